# Where UCX comes from. Sourced by setup.sh. It has an environment of its own: a user's Torch is left alone.
ucx_venv=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/ucx-1.22.0

# need_ucx: sets ucx_dir for CMake. DDPRUN_UCX_DIR is an order: a folder, or `system` for the one that pkg-config knows.
need_ucx() {
  local candidate
  ucx_dir=${DDPRUN_UCX_DIR:-}
  if [[ $ucx_dir == system ]]; then return; fi
  if [[ $ucx_dir ]]; then
    [[ -e $ucx_dir/include/ucp/api/ucp.h && -e $ucx_dir/lib/libucp.so.0 ]] ||
      fail "UCX: DDPRUN_UCX_DIR=$ucx_dir has no include/ucp/api/ucp.h and lib/libucp.so.0"
    ucx_dir=$(realpath "$ucx_dir")
    return
  fi
  need_environment ucx "UCX 1.22.0, 160 MB" "$ucx_venv" "$setup/ucx.txt"
  for candidate in "$ucx_venv"/lib/python3*/site-packages/libucx; do ucx_dir=$candidate; done
  [[ -e $ucx_dir ]] || fail "UCX: $ucx_venv holds none although its stamp says so; remove it and run again"
}
