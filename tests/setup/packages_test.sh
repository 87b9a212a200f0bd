#!/usr/bin/env bash
# packages_test.sh TORCH NCCL CUDA: makes Debian's packages and the archive, and installs, uses, upgrades and removes the
# packages in a bare system of this Debian release. The folders are those of the build. The bare system is kept in
# ~/.cache/ddprun for the next time; only its packages are fetched.
set -euo pipefail
torch=$1
build=$(cd "$(dirname "$0")/../.." && pwd)/build/package-test  # in the clone, so that ccache knows the files
settings=("-DDDPRUN_TORCH_DIR=$torch" "-DDDPRUN_NCCL_DIR=$2" "-DDDPRUN_CUDA_DIR=$3")
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/setup/bare_system.sh
. "$root/tests/setup/bare_system.sh" debootstrap lintian
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
box=$(mktemp -d /var/tmp/ddprun-packages-XXXXXX)
trap 'rm -rf --one-file-system "$box"' EXIT
export DEBFULLNAME="ddprun's test" DEBEMAIL=test@example.org

# make REVISION GENERATORS: into $box/made/REVISION
make() {
  local generators=$2
  cmake -S "$root" -B "$build" --preset package "${settings[@]}" -DDDPRUN_REVISION="$1" >"$box/log" 2>&1 || fail "cmake: $(<"$box/log")"
  cmake --build "$build" --target product >"$box/log" 2>&1 || fail "build: $(tail -n 30 "$box/log")"
  mkdir -p "$box/made/$1"
  cpack -G "$generators" --config "$build/CPackConfig.cmake" -B "$box/made/$1" >"$box/log" 2>&1 || fail "cpack: $(<"$box/log")"
}
make 2 DEB
make 1 "DEB;TGZ"
lintian --allow-root --fail-on error --suppress-tags bogus-mail-host "$box"/made/1/*.deb >"$box/log" 2>&1 ||
  fail "lintian: $(<"$box/log")"

# Someone's plugins build and pass with the development package.
for package in "$box"/made/1/*.deb; do dpkg-deb -x "$package" "$box/unpacked"; done
cmake -S "$root/tests/setup/out_of_tree" -B "$box/lone" -G Ninja -DCMAKE_PREFIX_PATH="$box/unpacked/usr" \
  -DDDPRUN_TORCH_DIR="$torch" >"$box/log" 2>&1 || fail "find_package: $(<"$box/log")"
cmake --build "$box/lone" >"$box/log" 2>&1 || fail "a plugin: $(<"$box/log")"
ctest --test-dir "$box/lone" >"$box/log" 2>&1 || fail "conformance: $(<"$box/log")"

export DDPRUN_FRESH_ROOT=$box/system DDPRUN_FRESH_BASE=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/bare-$suite
"$root/tests/fresh/run" --suite "$suite" --bare "$DDPRUN_FRESH_BASE" 2>"$box/log" || skip "no bare system: $(tail -n 1 "$box/log")"
in_bare_system() { "$root/tests/fresh/run" --suite "$suite" bash -euo pipefail -c "$1" >"$box/log" 2>&1 || fail "$(tail -n 30 "$box/log")"; }
in_bare_system true
mv "$box/made" "$DDPRUN_FRESH_ROOT/made"
mkdir "$DDPRUN_FRESH_ROOT/python"
for package in "$torch" "$torch"/../nvidia; do
  [[ ! -e $package ]] || cp -rlT "$package" "$DDPRUN_FRESH_ROOT/python/${package##*/}" 2>/dev/null ||
    cp -rT "$package" "$DDPRUN_FRESH_ROOT/python/${package##*/}"
done
# shellcheck disable=SC2016
in_bare_system '
  export HOME=/home/user OMP_NUM_THREADS=1 DEBIAN_FRONTEND=noninteractive
  mkdir -p "$HOME"
  # All but what apt, dpkg and the loader keep for themselves, and Python compiles.
  files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /made -o -path /src -o -path /python -o -path /run \
      -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print |
      grep -v "^/etc/ld.so.cache$\|^/etc/[a-z]*-$\|/__pycache__" | sort
  }
  use() {  # use PREFIX: the installed programs
    ddprun=$1/bin/ddprun
    "$ddprun" plugins >/tmp/plugins
    for plugin in gloo shm ucx linear; do grep "$1/lib/ddprun/v1/libddprun_[a-z]*_$plugin.so" /tmp/plugins; done
    "$ddprun" bench --ranks 2 --backend gloo,shm,ucx --sizes 4K
    if "$ddprun" --config configs/linear_ddp_gloo.toml 2>/tmp/said; then echo "it trains without Torch"; exit 1; fi
    grep "needs Torch 2.*, and there is none; activate" /tmp/said
    if DDPRUN_TORCH_DIR=/no "$ddprun" --version 2>/tmp/said; then echo "it takes a folder without Torch"; exit 1; fi
    [[ -e $1/share/ddprun/vega.js ]]
    grep "there is none; DDPRUN_TORCH_DIR=/no has no lib/libtorch_cpu.so; " /tmp/said
    cd /tmp
    DDPRUN_TORCH_DIR=/python/torch "$ddprun" --config /src/ddprun/configs/linear_ddp_gloo.toml --set train.epochs=1
    cd /src/ddprun
  }
  apt-get -q update
  files >/tmp/before
  dpkg-query -Wf "\${Package}\n" | sort >/tmp/packages
  apt-get -q install -y --no-install-recommends /made/1/*.deb
  use /usr
  apt-get -q install -y --no-install-recommends /made/2/*.deb
  dpkg-query -W ddprun | grep "$(echo /made/2/ddprun_* | sed "s/.*ddprun_\(.*\)_amd64.deb/\1/")"
  ddprun --help >/dev/null
  rm -rf /home/user/runs
  apt-get -q purge -y --autoremove ddprun ddprun-plugins libddprun1 libddprun-dev
  # apt does not remove an important package that has come as a dependency (Debian 13: adduser).
  dpkg-query -Wf "\${Package}\n" | sort | comm -13 /tmp/packages - | xargs -r apt-get -q purge -y
  files >/tmp/after
  diff /tmp/before /tmp/after
  tar -C /home/user -xzf /made/1/ddprun-*.tar.gz
  mv /home/user/ddprun-* /home/user/any
  use /home/user/any'
echo "passed: packages and archive, on $suite"
