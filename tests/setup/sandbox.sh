# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# To be sourced. A clone and a PATH in a temporary folder for one test of the set-up. Nothing on this PATH uses the
# network or installs anything: tools are fakes that record their calls, or links to harmless real ones.
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
real_tools=(awk basename bash cat chmod comm cp dirname env flock grep head mkdir mv nproc paste readlink realpath rm
  script sed sleep sort tail tee touch tr wc)

fake_cmake='while [ "$1" != --preset ]; do shift; done
  folder=$BOX/clone/build/$2
  if [ "$2" = torch ]; then folder+=-$DDPRUN_TORCH_VERSION; fi
  mkdir -p "$folder"; : >"$folder/build.ninja"'

make_sandbox() {
  local tool
  box=$(mktemp -d "${TMPDIR:-/tmp}/ddprun-setup-XXXXXX")
  clone=$box/clone
  mkdir -p "$clone/tests" "$clone/tools" "$clone/build/release/bin" "$box/bin" "$box/home"
  cp -r "$source_dir/ddprun" "$source_dir/run-tests" "$source_dir/CMakePresets.json" "$source_dir/cmake" "$clone"
  cp "$source_dir/tests/summary.py" "$clone/tests"
  for tool in bench report; do
    mkdir "$clone/tools/$tool"
    cp "$source_dir/tools/$tool"/{CMakeLists.txt,main.cpp} "$clone/tools/$tool"
  done
  for tool in "${real_tools[@]}"; do ln -s "$(command -v "$tool")" "$box/bin/$tool"; done
  : >"$box/calls"
  # All Debian packages are installed, the user is root, python3 has no torch, CMake works, ninja has nothing to do.
  entries "$source_dir"/cmake/setup/packages{,-tests}.txt >"$box/installed"
  fake dpkg-query 'while read -r package; do echo "installed $package"; done <"$BOX/installed"'
  fake apt-get ''
  fake id 'echo 0'
  fake python3 'exit 1'
  fake cmake "$fake_cmake"
  fake ninja 'echo "[0/1] Re-checking globbed directories..."; echo "ninja: no work to do."'
  printf '#!/bin/bash\necho "the program:" "$@"\n' >"$clone/build/release/bin/ddprun"
  chmod +x "$clone/build/release/bin/ddprun"
  make_ucx
  make_nccl
  make_charts
  make_site
  make_wheels
  make_torch_version 2.7.1
  make_torch_version 2.15.0
}

# The complete environment of UCX; its python records its calls under a separate name.
make_ucx() {
  ucx=$box/home/.cache/ddprun/ucx-1.22.0
  mkdir -p "$ucx/bin" "$ucx/lib/python3.11/site-packages/libucx"
  fake ucx-python 'exit 1'
  ln -sf "$box/bin/ucx-python" "$ucx/bin/python"
  entries "$clone/cmake/setup/ucx.txt" >"$ucx/ddprun-complete.txt"
}

# The same for NCCL.
make_nccl() {
  nccl=$box/home/.cache/ddprun/nccl-2.28.9
  mkdir -p "$nccl/bin" "$nccl/lib/python3.11/site-packages/nvidia"
  fake nccl-python 'exit 1'
  ln -sf "$box/bin/nccl-python" "$nccl/bin/python"
  entries "$clone"/cmake/setup/nccl{,-cuda,-headers}.txt >"$nccl/ddprun-complete.txt"
}

# The same for charts.
make_charts() {
  charts=$box/home/.cache/ddprun/charts-1.9.0
  mkdir -p "$charts/bin"
  fake charts-python 'exit 1'
  ln -sf "$box/bin/charts-python" "$charts/bin/python"
  entries "$clone/cmake/setup/charts.txt" >"$charts/ddprun-complete.txt"
}

# The same for the site.
make_site() {
  site=$box/home/.cache/ddprun/site-1.6.1
  mkdir -p "$site/bin"
  fake site-python 'exit 1'
  ln -sf "$box/bin/site-python" "$site/bin/python"
  entries "$clone/cmake/setup/site.txt" >"$site/ddprun-complete.txt"
}

# The same for what builds wheels.
make_wheels() {
  wheels=$box/home/.cache/ddprun/wheels-1.1.2
  mkdir -p "$wheels/bin"
  fake wheels-python 'exit 1'
  ln -sf "$box/bin/wheels-python" "$wheels/bin/python"
  entries "$clone/cmake/setup/wheels.txt" >"$wheels/ddprun-complete.txt"
}

# The same for a Torch of ./run-tests --torch.
make_torch_version() {
  local folder=$box/home/.cache/ddprun/torch-$1
  mkdir -p "$folder/bin"
  fake version-python 'exit 1'
  ln -sf "$box/bin/version-python" "$folder/bin/python"
  make_torch "$folder/lib/python3.11/site-packages/torch" "${1%.*}"
  grep "^torch==$1 " "$clone/cmake/setup/torch-versions.txt" | tr ' ' '\n' | sort >"$folder/ddprun-complete.txt"
}

remove_sandbox() { rm -rf "$box"; }

entries() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

# fake NAME BODY: a tool that records its call as one line of $box/calls, then runs BODY.
fake() {
  printf '#!/bin/bash\nBOX=%q\necho "%s $*" >>"$BOX/calls"\n%s\n' "$box" "$1" "$2" >"$box/bin/$1"
  chmod +x "$box/bin/$1"
}

# A LibTorch folder of a version, with the files that the set-up reads.
make_torch() {
  mkdir -p "$1/include/ATen" "$1/include/torch/headeronly" "$1/lib"
  touch "$1/include/ATen/ATen.h" "$1/lib/libtorch_cpu.so" "$1/lib/libc10.so" "$1/__init__.py"
  printf '#define TORCH_VERSION_%s\n' "MAJOR ${2%.*}" "MINOR ${2#*.}" "PATCH 0" >"$1/include/torch/headeronly/version.h"
}

# The environment of ddprun, complete for the given lists; its python records its calls, and reports nothing incomplete.
make_environment() {
  venv=$box/home/.cache/ddprun/torch-2.11.0
  mkdir -p "$venv/bin"
  fake venv-python "$1"
  ln -sf "$box/bin/venv-python" "$venv/bin/python"
  make_torch "$venv/lib/python3.11/site-packages/torch" 2.11
  shift
  if (($#)); then entries "${@/#/$clone/cmake/setup/}" | sort -u >"$venv/ddprun-complete.txt"; fi
}

# run COMMAND...: runs it in the clone, with only this PATH in the environment; sets status, output (stdout) and errors.
run() {
  status=0
  (cd "$clone" && exec env -i HOME="$box/home" PATH="$box/bin" "${variables[@]}" "$@") \
    >"$box/output" 2>"$box/errors" </dev/null || status=$?
  output=$(<"$box/output") errors=$(<"$box/errors")
}

calls_of() { grep "^$1 " "$box/calls" || true; }

expect() {  # expect WHAT ACTUAL EXPECTED
  [[ $2 == "$3" ]] && return
  printf '  %s:\n    expected: %s\n    actual:   %s\n' "$1" "$3" "$2"
  failed=yes
}

expect_has() {  # expect_has WHAT TEXT PART
  [[ $2 == *"$3"* ]] && return
  printf '  %s:\n    expected, somewhere: %s\n    actual:   %s\n' "$1" "$3" "$2"
  failed=yes
}
