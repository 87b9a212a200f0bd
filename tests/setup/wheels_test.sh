#!/usr/bin/env bash
# wheels_test.sh WHEELS TORCH UCX: installs the wheels into an environment that is then moved, and uses it. TORCH and UCX
# are the folders of these packages; they are linked into the environment instead of installed.
set -euo pipefail
wheels=$1
torch=$2
ucx=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
fail() { printf 'wheels_test: %s\n' "$*" >&2; exit 1; }

/usr/bin/python3 -m venv "$box/first"
"$box/first/bin/pip" -q --disable-pip-version-check install --no-index --no-deps "$wheels"/ddprun-*.whl
mv "$box/first" "$box/env"
env=$box/env
packages=$(echo "$env"/lib/python3*/site-packages)
ln -s "$ucx" "$packages/libucx"
export HOME=$box/home OMP_NUM_THREADS=1
mkdir "$HOME"

[[ -e $env/share/ddprun/vega.js ]] || fail "it cannot draw charts"
for program in "$env"/bin/ddprun-*; do
  "$program" --help >"$box/out" || fail "$program --help: $(<"$box/out")"
done
"$env/bin/ddprun" plugins >"$box/out"
for plugin in gloo shm ucx; do
  grep -q "$env/lib/ddprun/v1/libddprun_comm_$plugin.so" "$box/out" || fail "no plugin $plugin: $(<"$box/out")"
done
"$env/bin/ddprun" bench --ranks 2 --backend gloo,shm,ucx --sizes 4K >"$box/out" 2>&1 || fail "bench: $(<"$box/out")"
config=$root/configs/linear_ddp_gloo.toml
if "$env/bin/ddprun" --config "$config" >"$box/out" 2>&1; then fail "it trains without ddprun-train"; fi
grep -q "pip install ddprun-train" "$box/out" || fail "without ddprun-train it said: $(<"$box/out")"

"$env/bin/python" -m pip -q --disable-pip-version-check install --no-index --no-deps "$wheels"/ddprun_train-*.whl
# Another Torch than that of the wheel, and none at all.
said() { if "$env/bin/ddprun" --config "$config" >"$box/out" 2>&1; then fail "it trains without its Torch"; fi; }
said
grep -q "needs Torch .*, and there is none; install it, or the ddprun-train for another Torch, with $env/bin/python -m pip$" "$box/out" || fail "without Torch: $(<"$box/out")"
mkdir -p "$packages/torch/lib"
touch "$packages/torch/lib/libtorch_cpu.so"
echo "__version__ = '1.13.0+cu117'" >"$packages/torch/version.py"
said
grep -q "; $env/.*/torch has Torch 1.13.0+cu117; install it" "$box/out" || fail "another Torch: $(<"$box/out")"
[[ $(wc -l <"$box/out") == 1 ]] || fail "more than one line: $(<"$box/out")"
rm -r "$packages/torch"
for package in "$torch" "$torch"/../nvidia "$torch"/../typing_extensions.py; do
  [[ ! -e $package ]] || ln -s "$(readlink -f "$package")" "$packages/"
done
"$env/bin/ddprun" --version | grep -q '^torch 2\.' || fail "--version: $("$env/bin/ddprun" --version)"
(cd "$box" && "$env/bin/ddprun" --config "$config" --set train.epochs=1) >"$box/out" 2>&1 ||
  fail "training: $(<"$box/out")"
"$env/bin/python" -c 'import sys, types
# Without importing torch: of the package the module that loads the library.
sys.modules["ddprun"] = types.ModuleType("ddprun")
sys.modules["ddprun"].__path__ = [sys.argv[1]]
from ddprun import library
assert set(library.backends()) >= {"gloo", "shm", "ucx"}, library.backends()' "$packages/ddprun" || fail "the Python package"
left=$(find "$HOME" -type f -not -path '*/.rustup/*')  # pip asks rustc for its version
[[ ! $left ]] || fail "written into the home: $left"
if readelf -d "$env"/bin/ddprun "$env"/libexec/* "$env"/lib/*.so "$env"/lib/ddprun/v1/*.so |
  grep 'PATH)' | grep -v '\[$ORIGIN' | grep .; then
  fail "an absolute run path"
fi
echo "passed: both wheels, in an environment that was moved"
