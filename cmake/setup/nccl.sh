# Where NCCL and the CUDA runtime come from, for comm_nccl. Sourced by setup.sh, after Torch was found: what Torch has
# brought is used, so that a process has one copy; an environment of our own has the rest. No driver is needed.
nccl_venv=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/nccl-2.28.9

# need_nccl: sets nccl_dir and cuda_dir (folders, with ; between them) for CMake. DDPRUN_NCCL_DIR and DDPRUN_CUDA_DIR are
# orders, which CMake looks into.
need_nccl() {
  local lists=() beside=$torch_dir/../nvidia own
  nccl_dir=${DDPRUN_NCCL_DIR:-} cuda_dir=${DDPRUN_CUDA_DIR:-}
  if [[ ! $nccl_dir ]]; then
    if [[ -e $beside/nccl/include/nccl.h && -e $beside/nccl/lib/libnccl.so.2 ]]; then
      nccl_dir=$(realpath "$beside/nccl")
    else
      lists+=("$setup/nccl.txt")
    fi
  fi
  if [[ ! $cuda_dir ]]; then
    if [[ -e $beside/cu13/include/cuda_runtime.h && -e $beside/cu13/lib/libcudart.so.13 ]]; then
      cuda_dir=$(realpath "$beside/cu13")
    else
      lists+=("$setup/nccl-cuda.txt")
    fi
    lists+=("$setup/nccl-headers.txt")
  fi
  ((${#lists[@]})) || return 0
  need_environment nccl "NCCL 2.28.9, at most 230 MB" "$nccl_venv" "${lists[@]}"
  for own in "$nccl_venv"/lib/python3*/site-packages/nvidia; do
    nccl_dir=${nccl_dir:-$own/nccl}
    if [[ ! ${DDPRUN_CUDA_DIR:-} ]]; then cuda_dir=${cuda_dir:+$cuda_dir;}$own/cu13; fi
  done
}
