#!/usr/bin/env bash
# new_test.sh BUILD: installs the build, moves the prefix, and does with each kind of `ddprun new` what its README says:
# configure, build, run CTest, which tests conformance and trains, and install for the user.
set -euo pipefail
build=$1
box=$(mktemp -d "${TMPDIR:-/tmp}/ddprun-new-XXXXXX")
trap 'rm -rf "$box"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
unset DDPRUN_PLUGIN_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH
export XDG_DATA_HOME=$box/data  # the user's own plugins

cmake --install "$build" --prefix "$box/first" >"$box/install.log"
prefix=$box/moved
mv "$box/first" "$prefix"
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
refuses 'only a communication backend can be written in C' model net --language c
refuses 'pattern' pattern net
mkdir kept && echo mine >kept/file
refuses 'kept: exists already' dataset kept
[[ $(ls -A kept) == file ]] || fail "kept/ was changed"

# project NAME PRESET ARGUMENT...: the fewest ranks that find a mistake, with patience, because this machine is busy.
project() {
  local name=$1 preset=$2
  shift 2
  "$ddprun" new "$@" --folder "$name" >"$name.log"
  ! grep -rn '@[A-Z_]*@' "$name" || fail "$name: a word of the template is left"
  sed -i 's/^\(ddprun_add_conformance_test(ddprun_comm_[a-z_]*\))/\1 ARGS --ranks 2 --as processes --slack 15000 --exclude int --exclude float64)/' "$name/CMakeLists.txt"
  (cd "$name" && cmake --preset "$preset" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build --preset "$preset" && ctest --preset "$preset" --no-tests=error) >>"$name.log" 2>&1 ||
    fail "$name: $(<"$name.log")"
  if [[ $preset == release ]]; then
    (cd "$name" && cmake --install build/release --component user && "$ddprun" validate config.toml) >>"$name.log" 2>&1 ||
      fail "$name, installed for the user: $(<"$name.log")"
  fi
  ! grep -n 'warning:' "$name.log" || fail "$name: a warning of the compiler"
  echo "ok: $name, $(grep 'tests passed' "$name.log")"
}
project points release dataset points &
data_set=$!
project wire_c release comm wire_c --language c &
in_c=$!
project wire asan comm wire &
in_cpp=$!
project net release model net
for process in $data_set $in_c $in_cpp; do wait $process; done
echo "ok"
