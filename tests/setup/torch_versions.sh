#!/usr/bin/env bash
# torch_versions.sh VERSION [FOLDER]: builds ddprun with the Torch of this version from PyPI, runs the tests of the library
# on it, and builds and runs the programs of examples/ against an installation. ./run-tests does not run this, as it
# downloads Torch: 0.8 GB, 1.2 GB in FOLDER. Without FOLDER, Torch is temporary; with FOLDER, it is kept and used again.
set -euo pipefail
version=${1:?usage: torch_versions.sh VERSION [FOLDER]}
root=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${2:-} ]]; then
  mkdir -p "$2"
  folder=$(realpath "$2")
else
  folder=$(mktemp -d "${TMPDIR:-/tmp}/ddprun-torch-XXXXXX")
  trap 'rm -rf "$folder"' EXIT
fi
setup=$root/cmake/setup
# shellcheck source=../../cmake/setup/pins.sh
. "$setup/pins.sh"

# libtorch_cpu itself needs two of CUDA's libraries, of the versions that the wheel names.
install_pins "$folder/venv" "torch==$version"
wheel=("$folder"/venv/lib/python3*/site-packages)
mapfile -t cuda < <(sed -n 's/^Requires-Dist: \(nvidia-cuda-\(runtime\|cupti\)-cu12==[0-9.]*\).*/\1/p' \
  "${wheel[0]}/torch-$version.dist-info/METADATA")
if ((${#cuda[@]} == 0)); then mapfile -t cuda < <(grep '^nvidia' "$setup/torch-cpu.txt"); fi
install_pins "$folder/venv" "${cuda[@]}"

# In this tree, so that ccache has what does not depend on Torch.
build=$root/build/torch-$version torch=${wheel[0]}/torch
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DDDPRUN_TORCH_DIR=$torch"
cmake --build "$build" --target product test_ddp
ctest --test-dir "$build" --output-on-failure -R '^(ddp|headers|examples_library)$'
echo "ok: Torch $version"
