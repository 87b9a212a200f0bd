#!/usr/bin/env bash
# new_test.sh BUILD: installs the build, moves the prefix, and writes a project of each kind with `ddprun new`. The one in C
# is built with sanitizers, and its CTest runs the conformance suite.
set -euo pipefail
build=$1
source "$(dirname "$0")/moved_prefix.sh"
ddprun=$prefix/bin/ddprun
cd "$box"

# refuses WHAT ARGUMENT...: exit code 2, and one line with WHAT.
refuses() {
  local what=$1 code=0
  shift
  "$ddprun" new "$@" >"$box/refused" 2>&1 || code=$?
  [[ $code == 2 ]] || fail "new $*: exit code $code"
  grep -q -- "$what" "$box/refused" || fail "new $*: $(<"$box/refused")"
}
refuses 'expected small letters' comm My-Wire
refuses 'only a communication backend can be written in C or Rust' model net --language c
refuses 'only a communication backend can be written in C or Rust' dataset points --language rust
refuses 'pattern' pattern net
mkdir kept && echo mine >kept/file
refuses 'kept: exists already' dataset kept
[[ $(ls -A kept) == file ]] || fail "kept/ was changed"

# The pages for authors build the other projects (tests/pages).
for arguments in "comm wire" "comm wire_c --language c" "comm wire_r --language rust" "model net" "dataset points"; do
  read -r _ name _ <<<"$arguments"
  "$ddprun" new $arguments >"$box/$name.log"
  grep -q -- "-DCMAKE_PREFIX_PATH=$prefix$" "$box/$name.log" && ! grep -q 'not installed' "$box/$name.log" ||
    fail "new $name said: $(<"$box/$name.log")"
  ! grep -rn '@[A-Z_]*@' "$name" || fail "$name: a word of the template is left"
done
! grep -rn 'tcp_rust' wire_r || fail "the name of the example is left"
# The fewest ranks that find a mistake, with patience, because this machine is busy.
for name in wire_c wire_r; do
  sed -i "s/^\(ddprun_add_conformance_test(ddprun_comm_$name\))/\1 ARGS --ranks 2 --as processes --slack 15000 --exclude int --exclude float64)/" $name/CMakeLists.txt
done
(cd wire_c && cmake --preset asan -G Ninja -DCMAKE_PREFIX_PATH="$prefix" && cmake --build --preset asan &&
  ctest --preset asan --no-tests=error) >wire_c.log 2>&1 || fail "wire_c: $(<wire_c.log)"
if command -v rustc >/dev/null; then
  (cd wire_r && cmake --preset release -G Ninja -DCMAKE_PREFIX_PATH="$prefix" && cmake --build --preset release &&
    ctest --preset release --no-tests=error && cmake --install build/release --component user) >wire_r.log 2>&1 ||
    fail "wire_r: $(<wire_r.log)"
  "$ddprun" plugins | grep -q wire_r || fail "wire_r is not found after its installation"
else
  echo "skipped: the project in Rust, because rustc is missing; the Debian package is rustc"
fi
! grep -n 'warning:' wire_*.log || fail "a warning of the compiler"
echo "ok"
