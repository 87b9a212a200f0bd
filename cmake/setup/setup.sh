# What ./ddprun and ./run-tests share: install what is missing, configure, build. Sourced by bash, with `root` set to
# the checkout. Every step prints a line on stderr when it begins, and says how far it is while it runs (progress.sh); its
# output is in build/setup/. What is done already is silent.
setup=$root/cmake/setup
logs=$root/build/setup
# shellcheck source=cmake/setup/progress.sh
. "$setup/progress.sh"
# shellcheck source=cmake/setup/torch.sh
. "$setup/torch.sh"
# shellcheck source=cmake/setup/ucx.sh
. "$setup/ucx.sh"
# shellcheck source=cmake/setup/nccl.sh
. "$setup/nccl.sh"
# shellcheck source=cmake/setup/charts.sh
. "$setup/charts.sh"
# shellcheck source=cmake/setup/site.sh
. "$setup/site.sh"
# shellcheck source=cmake/setup/wheels.sh
. "$setup/wheels.sh"

trap 'stop_ticking; say interrupted; exit 130' INT

say() { printf 'ddprun: set-up: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# known_reason LOG: why a command failed and what to do, for what a user can mend.
known_reason() {
  if grep -qs 'No space left on device' "$1"; then
    echo ": the disk is full; free some space and run this again"
  elif grep -qsE 'Temporary failure|Could not resolve|Failed to establish a new connection|Network is unreachable' "$1"; then
    echo ": no connection to the packages; check the network and https_proxy, and run this again"
  elif grep -qs 'ensurepip is not' "$1"; then
    echo ": /usr/bin/python3 has no venv; install python3-venv and run this again"
  fi
}

# step LOG NAME COMMAND...: runs the command into the log; if it fails, says why, or shows the log's end, and names both.
step() {
  local log=$logs/$1 name=$2 reason status=0
  shift 2
  say "$name"
  while_ticking "${name%%: *}" "$log" "$@" || status=$?
  ((status == 0)) && return
  reason=$(known_reason "$log")
  [[ $reason ]] || tail -n 25 "$log" >&2
  fail "$name: failed (exit $status)$reason; log: $log"
}

# lock FD FILE WHAT: holds the file's lock until FD is closed, so that two of us do not install or build the same thing.
lock() {
  eval "exec $1>>\"\$2\""
  flock --nonblock "$1" && return
  say "waiting for another process that sets up $3"
  while_ticking waiting /dev/null flock "$1"
}

as_root() {
  if (($(id -u) == 0)); then "$@"; else sudo -- "$@"; fi
}

# Nobody is there to answer a question about a changed file in /etc: it stays. sudo drops the variables that say where
# the proxy is. The locks are closed for it: a service that it starts would keep them.
apt() {
  local proxies
  mapfile -t proxies < <(env | grep -iE '^(https?|no)_proxy=' || true)
  as_root env "${proxies[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
    -o DPkg::Options::=--force-confold "$@" 8>&- 9>&-
}

# Package lists may be absent (a fresh system) or stale (names that the mirror has no more): then they are fetched.
install_packages() {
  if compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
    apt install -y --no-install-recommends "$@" && return
  fi
  apt update && apt install -y --no-install-recommends "$@"
}

installed_packages() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p'
}

# The name of this system, "" on a Debian of which the set-up knows the packages.
os_release=/etc/os-release
unknown_system() {
  (
    # shellcheck disable=SC1090
    . "$os_release"
    [[ $ID-${VERSION_ID:-} =~ ^debian-1[23]$ ]] || echo "${PRETTY_NAME:-$ID}"
  )
}

# need_packages program|tests
need_packages() {
  local wanted missing command system size='120 MB' lists=("$setup/packages.txt")
  if [[ $1 == tests ]]; then lists+=("$setup/packages-tests.txt") size='500 MB'; fi
  mapfile -t wanted < <(entries "${lists[@]}")
  system=$(unknown_system)
  command -v dpkg-query >/dev/null ||
    fail "packages: this set-up knows Debian 12 and 13, and this is $system; install in its way what Debian calls" \
      "${wanted[*]}; then: cmake --preset release && cmake --build --preset release"
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort) <(installed_packages "${wanted[@]}" | sort))
  ((${#missing[@]} == 0)) && return
  [[ ! $system ]] || say "this set-up knows Debian 12 and 13; on $system it tries their package names"
  command="apt-get install -y --no-install-recommends ${missing[*]}"
  if (($(id -u) != 0)) && ! command -v sudo >/dev/null; then
    fail "Debian packages are missing, and there is neither root nor sudo to install them; as root: $command"
  fi
  step packages.log "installing ${#missing[@]} Debian packages (at most $size): ${missing[*]}" install_packages "${missing[@]}"
}

# configure PRESET [-D...]: once, and again when it is asked for another value or the presets change; CMake notices
# changes of its own files itself. What was asked for is written down last, so that a failure is tried again.
# build/torch-2.7 and its like are folders of one preset, torch, which asks DDPRUN_TORCH_VERSION.
configure() {
  local preset=$1 done=$logs/configured-$1 argument known=yes
  shift
  for argument in "$@"; do
    grep -Fxqs -e "$argument" "$done" || known=''
  done
  if [[ $known && -e $root/build/$preset/build.ninja && -e $done && ! $root/CMakePresets.json -nt $done ]]; then
    return
  fi
  rm -f "$done"
  step "configure-$preset.log" "configuring build/$preset" cmake -S "$root" --preset "${preset%%-*}" "$@"
  printf '%s\n' "$@" >"$done"
}

# As many compilers at once as there are cores, and 2 GiB of free memory for each: LibTorch's headers take that much.
build_jobs() {
  local cores free
  cores=$(nproc)
  free=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)
  echo $((free < 1 ? 1 : free < cores ? free : cores))
}

# build PRESET [TARGET...]: silent when there is nothing to do.
build() {
  local preset=$1 log=$logs/build-$1.log status=0
  shift
  ninja -C "$root/build/$preset" -j "$(build_jobs)" "$@" </dev/null 2>&1 |
    tee "$log" | show_build "building build/$preset" "$log" || status=${PIPESTATUS[0]}
  ((status == 0)) && return
  grep -E -A 12 'FAILED:|error:|ninja: error' "$log" | head -n 60 >&2 || true
  fail "building build/$preset (log: $log): failed (exit $status)"
}

# prepare program|tests|torch_versions [charts]: takes the clone's lock and installs. Sets torch_dir, torch_python, ucx_dir,
# nccl_dir, cuda_dir and, with tests or charts, charts_python. With torch_versions, sets ucx_dir only.
prepare() {
  mkdir -p "$logs"
  lock_clone
  need_packages "${1/torch_versions/tests}"
  need_ucx
  [[ $1 == torch_versions ]] && return
  need_torch "$1"
  need_nccl
  charts_python=''
  if [[ $* == *tests* || $* == *charts* ]]; then need_charts; fi
  if [[ $1 == tests ]]; then
    need_site
    need_wheels
  fi
}

lock_clone() { lock 9 "$logs/lock" "this clone"; }
unlock_clone() { exec 9>&-; }
