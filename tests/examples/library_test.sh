#!/usr/bin/env bash
# library_test.sh BUILD TORCH_DIR: the programs of examples/ddp_*, which use the library. Installs the build, moves the
# prefix, builds copies of the programs against it, with CMake and with pkg-config, and runs them on two ranks.
set -euo pipefail
build=$1 torch=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=../setup/moved_prefix.sh
source "$root/tests/setup/moved_prefix.sh"
unset CXXFLAGS
export CMAKE_GENERATOR=Ninja
cd "$box"  # ccache stores paths relative to the working folder, and the name of $box is different in each run
strict='-Wall -Wextra -Werror'

# with_cmake EXAMPLE [OPTION...]
with_cmake() {
  local copy=$box/$1
  cp -r "$root/examples/$1" "$copy"
  cmake -S "$copy" -B "$copy/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="$strict" "${@:2}" &&
    cmake --build "$copy/build"
}
# Without CMake, and in the oldest C++ that Torch's headers take.
standard=$(grep -oE -- '-std=[a-z0-9+]+' "$prefix/lib/pkgconfig/ddprun-ddp.pc" || echo -std=c++17)
with_pkg_config() {
  local -x PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  # shellcheck disable=SC2046,SC2086
  g++ $standard $strict -c "$root/examples/ddp_accumulate/main.cpp" $(pkg-config --cflags ddprun-ddp) -o "$box/main.o" &&
    g++ "$box/main.o" $(pkg-config --libs ddprun-ddp) -o "$box/by_pkg_config"
}
# The lines in docs/library.md which make the mnist program parallel: without them, it needs Torch only.
without_the_lines() {
  mkdir -p "$box/single/examples/ddp_mnist"
  cp "$root/examples/ddp_mnist/main.cpp" "$box/single/examples/ddp_mnist"
  sed -n '/^```diff$/,/^```$/p' "$root/docs/library.md" | grep -v '^```' >"$box/single/lines.diff"
  (cd "$box/single" && GIT_CEILING_DIRECTORIES=$box git apply --reverse --unidiff-zero --verbose lines.diff)
  ! grep ddprun:: "$box/single/examples/ddp_mnist/main.cpp" || return 1
  # shellcheck disable=SC2086
  g++ $standard $strict -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
    -c "$box/single/examples/ddp_mnist/main.cpp" -o "$box/single/main.o"
}
# start NAME COMMAND...: in the background, two at a time.
failed=no
start() {
  while (($(jobs -rp | wc -l) >= 2)); do wait -n || failed=yes; done
  { "${@:2}" >"$box/$1.log" 2>&1 || { echo "FAILED: $1: $(<"$box/$1.log")"; exit 1; }; } &
}
finish() {
  while [[ -n $(jobs -p) ]]; do wait -n || failed=yes; done
  [[ $failed == no ]] || fail "see above"
}

! with_cmake ddp_mnist -DTORCH_INSTALL_PREFIX=/usr >"$box/log" 2>&1 || fail "a program with another Torch is accepted"
tr -s '\n ' ' ' <"$box/log" | grep >/dev/null 'built with Torch .* find_package(Torch) has found another: /usr; use one Torch' ||
  fail "a program with another Torch: $(<"$box/log")"
rm -r "$box/ddp_mnist"

programs='ddp_mnist ddp_accumulate ddp_char_transformer ddp_uneven ddp_powersgd'
for program in $programs; do start "$program" with_cmake "$program"; done
start pkg_config with_pkg_config
start without_the_lines without_the_lines
finish

# ranks COUNT PROGRAM [ARGUMENT...]: its output is in $box/out.
ranks() { "$prefix/bin/ddprun" launch -n "$@" >"$box/out" 2>"$box/log" || fail "$*: $(<"$box/log")"; }
# says TEXT: a pattern that a line of the output has.
says() { grep -Eq -- "$1" "$box/out" || fail "expected '$1': $(<"$box/out")"; }
# The last number after "loss".
loss() { grep -Eo 'loss [0-9.]+' "$box/out" | tail -n 1 | cut -d' ' -f2; }
# below NUMBER LIMIT
below() { awk "BEGIN { exit !($1 < $2) }" || fail "$1 is not below $2: $(<"$box/out")"; }

# MNIST's files, in which bright rows say the class. (LibTorch's reader insists on MNIST's numbers of pictures.)
python3 - "$box" <<'PYTHON'
import pathlib, struct, sys
for name, size in (("train", 60_000), ("t10k", 10_000)):
    labels = bytes(i * 7 % 10 for i in range(size))
    pictures = [bytes(255 if row // 2 == label + 2 else 0 for row in range(28) for _ in range(28)) for label in range(10)]
    images = b"".join(pictures[label] for label in labels)
    folder = pathlib.Path(sys.argv[1])
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, size, 28, 28) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, size) + labels)
PYTHON
ranks 2 "$box/ddp_mnist/build/ddp_mnist" "$box" 1
says '^epoch 1: test loss 0\.[0-9]*, accuracy (1\.0|0\.9)'
[[ $(grep -c 'step 900' "$box/out") == 1 ]] || fail "expected lines of rank 0 only: $(<"$box/out")"

# Any number of ranks gives the same losses.
"$box/by_pkg_config" >"$box/out" || fail "one rank: $(<"$box/out")"
alone=$(loss)
below "$alone" 0.1
ranks 2 "$box/ddp_accumulate/build/ddp_accumulate"
says '^weights: equal on all ranks$'
below "sqrt(($(loss) - $alone) ^ 2)" 0.002

ranks 2 "$box/ddp_char_transformer/build/ddp_char_transformer"
says '^step 1: loss 4\.'
below "$(loss)" 2.3
says ' the '
ranks 2 "$box/ddp_uneven/build/ddp_uneven"
says '^epoch 1: loss 1[0-9]\.'
says '^rank 0: 8 batches'
says 'rank 1: 12 batches'
below "$(loss)" 6
ranks 2 "$box/ddp_powersgd/build/ddp_powersgd"
says '^step 1: loss'
below "$(loss)" 5
echo "ok: $programs"
