#!/usr/bin/env bash
# install_test.sh BUILD: installs the build, moves the prefix, and uses it as a user does: runs the program, and builds,
# installs and lists plugins out of tree.
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/moved_prefix.sh"

for file in bin/ddprun libexec/ddprun-engine lib/libddprun.so lib/ddprun/v1/libddprun_comm_gloo.so \
  lib/libddprun_c.so lib/ddprun/python/ddprun/__init__.py include/ddprun/ddprun.h include/ddprun/plugin/comm_plugin.h lib/cmake/ddprun/ddprunConfig.cmake share/ddprun/{vega.js,page.css,page.js}; do
  [[ -e $prefix/$file ]] || fail "the prefix has no $file"
done
fakes=$(find "$prefix" -name '*off_by_one*' -o -name '*doctest*')
[[ ! $fakes ]] || fail "installed, but made for tests: $fakes"
for file in "$prefix"/bin/ddprun "$prefix"/libexec/ddprun-engine "$prefix"/lib/libddprun{,_c}.so \
  "$prefix"/lib/ddprun/v1/*.so; do
  run_path=$(readelf -d "$file" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p')
  [[ $run_path != *"$build"* ]] || fail "$file has a run path into the build folder: $run_path"
  [[ ! $run_path || :$run_path: != *::* ]] || fail "$file searches the current folder, by an empty entry: $run_path"
done

"$prefix/bin/ddprun" --version >"$box/version" || fail "the installed program does not run"
grep -q '^ddprun ' "$box/version" || fail "ddprun --version said: $(<"$box/version")"
"$prefix/bin/ddprun" --help >"$box/help"
for tool in bench compare completion conformance data doctor new predict report tune; do
  grep -Eq "^  $tool +[A-Z]" "$box/help" || fail "ddprun --help does not list $tool: $(<"$box/help")"
done
"$prefix/bin/ddprun" bench --help >"$box/help" || fail "ddprun bench --help does not run"
grep -q '^Usage: ddprun bench' "$box/help" || fail "ddprun bench --help said: $(<"$box/help")"
grep -q '"bench:--datatype"' "$prefix/share/bash-completion/completions/ddprun" || fail "the completion does not know bench"
for page in ddprun ddprun-validate ddprun-bench ddprun-completion; do
  file=$prefix/share/man/man1/$page.1
  [[ $page != ddprun-bench ]] || grep -qx 'The rank that broadcasts.' "$file" || fail "$file does not describe --root"
  [[ $(grep -c '^\.SH \(NAME\|SYNOPSIS\|OPTIONS\)$' "$file") == 3 ]] || fail "$file: $(<"$file")"
done
"$prefix/bin/ddprun" plugins >"$box/plugins"
grep -q "$prefix/lib/ddprun/v1/libddprun_comm_gloo.so" "$box/plugins" ||
  fail "ddprun plugins does not list the prefix's gloo: $(<"$box/plugins")"

cmake -S "$here/out_of_tree" -B "$box/lone" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$box/configure.log" ||
  fail "find_package: $(<"$box/configure.log")"
cmake --build "$box/lone" >"$box/build.log" || fail "build: $(<"$box/build.log")"
grep -q -- '-O3.*lone.cpp' "$box/lone/compile_commands.json" || fail "without CMAKE_BUILD_TYPE, lone.cpp is not optimised"
ctest --test-dir "$box/lone" >"$box/ctest.log" || fail "conformance: $(<"$box/ctest.log")"
grep -q '2 tests passed\|tests passed, 0 tests failed out of 2' "$box/ctest.log" || fail "expected 2 tests: $(<"$box/ctest.log")"
for build in "-DCMAKE_BUILD_TYPE=Debug" "-DCMAKE_CXX_FLAGS=-O0"; do
  cmake -S "$here/out_of_tree" -B "$box/other" -G Ninja --fresh -DCMAKE_PREFIX_PATH="$prefix" "$build" >"$box/configure.log"
  ! grep -q -- -O3 "$box/other/compile_commands.json" || fail "with $build, lone.cpp is optimised"
done
! cmake -S "$here/out_of_tree" -B "$box/other" -G Ninja --fresh -DCMAKE_PREFIX_PATH="$prefix" -DWITHOUT_TORCH=1 >"$box/configure.log" 2>&1 ||
  fail "a model without Torch is accepted"
tr -s '\n ' ' ' <"$box/configure.log" | grep >/dev/null 'model lone): a model needs Torch: find_package(ddprun REQUIRED COMPONENTS model)' ||
  fail "a model without Torch: $(<"$box/configure.log")"

# Into the user's own folder, where the installed program finds it; then into the prefix, which is searched before.
cmake --install "$box/lone" --component user >"$box/install.log"
user=$XDG_DATA_HOME/ddprun/plugins/v1
"$prefix/bin/ddprun" plugins >"$box/plugins"
grep "^comm  *lone .* $user/libddprun_comm_lone.so" "$box/plugins" | grep >/dev/null -v 'refused\|hidden' ||
  fail "ddprun plugins does not list the user's plugin: $(<"$box/plugins")"
"$prefix/bin/ddprun" bench --backend lone --ranks 1 -b 4 -e 4 >"$box/bench" 2>&1 || fail "bench of the user's plugin: $(<"$box/bench")"
grep -q "looked in $prefix/lib/ddprun/v1, $user, /usr/local/lib/ddprun/v1" "$box/plugins" || fail "searched: $(<"$box/plugins")"
cmake --install "$box/lone" --prefix "$prefix" >"$box/install.log"
"$prefix/bin/ddprun" plugins >"$box/plugins"
grep -q "hidden by $prefix/lib/ddprun/v1/libddprun_comm_lone.so .*$user/libddprun_comm_lone.so" "$box/plugins" ||
  fail "the prefix's plugin does not hide the user's: $(<"$box/plugins")"
for kind_name in comm_lone dataset_evens; do
  plugin=$prefix/lib/ddprun/v1/libddprun_$kind_name.so
  [[ $(nm -D --defined-only "$plugin" | awk '{ print $3 }') == ddprun_${kind_name%_*}_plugin_v1 ]] ||
    fail "$plugin exports: $(nm -D --defined-only "$plugin")"
  grep " $plugin" "$box/plugins" | grep >/dev/null -v 'refused\|hidden' || fail "ddprun plugins does not list $plugin: $(<"$box/plugins")"
done
# The C library, with pkg-config and with CMake's target, and its Python package.
flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs ddprun-c) || fail "pkg-config ddprun-c"
# shellcheck disable=SC2086
gcc "$here/../c/program.c" $flags -o "$box/program" && "$box/program" >"$box/program.log" 2>&1 ||
  fail "the C program: $(<"$box/program.log")"
functions=$(nm -D --defined-only "$prefix/lib/libddprun_c.so" | awk '{ print $3 }' | grep -v '^ddprun_' || true)
[[ ! $functions ]] || fail "libddprun_c.so also exports: $functions"
if python3 -c 'import ctypes' 2>/dev/null; then
  PYTHONPATH=$prefix/lib/ddprun/python python3 -c '
import sys, types
# Without Torch: a package without its __init__, and of it the module that loads the library.
sys.modules["ddprun"] = types.ModuleType("ddprun")
sys.modules["ddprun"].__path__ = [sys.argv[1]]
from ddprun import library
assert "shm" in library.backends(), library.backends()' "$prefix/lib/ddprun/python/ddprun" ||
    fail "the Python package does not find the library"
fi
echo "ok"
