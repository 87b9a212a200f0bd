# Sourced by tests that work in a bare system, as `. bare_system.sh PROGRAM...`, which they need. Defines fail and skip.
# shellcheck shell=bash
test=${0##*/} test=${test%.sh}
fail() { printf '%s: %s\n' "$test" "$*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
[[ $(id -u) == 0 ]] || skip "it needs root, for chroot and mounts"
for program in "$@"; do
  command -v "$program" >/dev/null || skip "$program is missing: apt-get install ${program/#ip/iproute2}"
done
unshare --mount --pid --net --ipc --uts --fork true 2>/dev/null || skip "this machine allows no namespaces"
