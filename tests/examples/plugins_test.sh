#!/usr/bin/env bash
# plugins_test.sh BUILD [asan]: the plugins of examples/, as a stranger uses them. Installs the build, moves the prefix,
# copies each example out of the checkout and does what its README says: builds it (with gcc and with clang), tests its
# conformance and trains; comm_mpi under mpirun. With asan: three backends, with AddressSanitizer and
# UndefinedBehaviorSanitizer.
set -euo pipefail
build=$1 mode=${2:-}
tests=$(cd "$(dirname "$0")" && pwd)
examples=$(cd "$tests/../../examples" && pwd)
unset CC CXX CFLAGS CXXFLAGS
export CMAKE_GENERATOR=Ninja CMAKE_BUILD_PARALLEL_LEVEL=1
source "$tests/../setup/moved_prefix.sh"
ddprun=$prefix/bin/ddprun
export CMAKE_PREFIX_PATH=$prefix

# The machine may be busy, so the suite is patient.
full='--ranks 2,3 --slack 15000 --exclude int --exclude float64'
short='--ranks 2 --slack 15000 --filter lifetime --filter requests --filter "auto float32" --filter "in flight"'

# For comm_mpi: root may run mpirun, ranks may be more than cores and are not bound, and they stay on this machine.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader
# Its segments, which a rank that is killed leaves behind, do not lie where other tests look for theirs.
export OMPI_MCA_btl_vader_backing_directory=$box OMPI_MCA_btl_sm_backing_directory=$box
mpi=''
if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then mpi=comm_mpi; fi

# example NAME COMPILER FLAGS ARGUMENTS: builds a copy and runs its CTests, a backend's suite with these arguments.
example() {
  local name=$1 compiler=$2 flags=$3 arguments=$4
  local copy=$box/$compiler/$name log=$box/$compiler-$name.log cxx=g++ settings=() launcher=()
  if [[ $compiler == clang-19 ]]; then cxx=clang++-19; fi
  mkdir -p "$box/$compiler"
  cp -r "$examples/$name" "$copy"
  if [[ $name == comm_mpi ]]; then  # mpirun says how many ranks there are
    settings=('-DARGS=--slack;15000;--exclude;int;--exclude;float64') launcher=(mpirun -n 2)
  elif [[ $name == comm_* ]]; then
    sed -i "s/^\(ddprun_add_conformance_test(ddprun_comm_[a-z_]*\))/\1 ARGS $arguments)/" "$copy/CMakeLists.txt"
    grep -q -- '--slack' "$copy/CMakeLists.txt" || fail "$name: CMakeLists.txt has no conformance test to shorten"
  fi
  (cd "$copy" &&
    cmake -S . -B build -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$flags" \
      -DCMAKE_CXX_FLAGS="$flags" -Wno-dev --no-warn-unused-cli "${settings[@]}" &&
    cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error) >"$log" 2>&1 ||
    fail "$name with $compiler: $(<"$log")"
  ! grep '^warning' "$log" || fail "$name: a warning of rustc"
  if [[ -z $mode ]]; then
    (cd "$copy" && "${launcher[@]}" "$ddprun" --config config.toml --plugin-path build) >"$log" 2>&1 ||
      fail "$name with $compiler does not train: $(<"$log")"
    grep -q '^run folder: ' "$log" || fail "$name with $compiler: no summary of the training: $(<"$log")"
  fi
  echo "ok: $name with $compiler"
}

# start COMMAND...: in the background, two at a time.
failed=no
start() {
  while (($(jobs -rp | wc -l) >= 2)); do wait -n || failed=yes; done
  "$@" &
}
finish() {
  while [[ -n $(jobs -p) ]]; do wait -n || failed=yes; done
  [[ $failed == no ]] || fail "see above"
}

if [[ $mode == asan ]]; then
  for name in comm_tcp_ring comm_tcp_direct comm_shm_direct; do
    start example "$name" gcc '-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all' "$full"
  done
  finish
  exit 0
fi

for name in model_lenet comm_tcp_ring comm_tcp_direct comm_shm_direct dataset_csv $mpi; do
  start example "$name" gcc '-Wall -Wextra -Werror' "$full"
done
if command -v rustc >/dev/null; then
  start example comm_tcp_rust gcc '' "$full"  # the compiler only links
else
  echo "skipped: comm_tcp_rust, because rustc is missing; the Debian package is rustc"
fi
if command -v clang++-19 >/dev/null; then
  for name in model_lenet comm_tcp_ring comm_tcp_direct comm_shm_direct dataset_csv $mpi; do
    start example "$name" clang-19 '-Wall -Wextra -Werror' "$short"
  done
else
  echo "skipped: builds with clang, because clang++-19 is missing; the Debian package is clang-19"
fi
finish
if [[ -z $mpi ]]; then
  echo "skipped: comm_mpi, because mpirun or mpicc is missing; the packages are openmpi-bin and libopenmpi-dev"
fi
cd "$box/gcc"

# says WHAT CODE COMMAND...: the exit code, and a line with WHAT.
says() {
  local what=$1 expected=$2 code=0
  shift 2
  "$@" >"$box/said" 2>&1 || code=$?
  [[ $code == "$expected" ]] || fail "$*: exit code $code, expected $expected: $(<"$box/said")"
  grep -qF -- "$what" "$box/said" || fail "$*: expected '$what': $(<"$box/said")"
}

says 'grey pictures of the shape [1, 28, 28] or [1, 32, 32], but the data set has [3, 32, 32]' 2 \
  "$ddprun" validate model_lenet/config.toml --plugin-path model_lenet/build --set data.options.shape=3x32x32
says '"tanh" or "relu"' 2 \
  "$ddprun" validate model_lenet/config.toml --plugin-path model_lenet/build --set model.options.activation=sigmoid
says 'config.toml: ok' 0 \
  "$ddprun" validate model_lenet/config.toml --plugin-path model_lenet/build --set data.options.shape=1x32x32
echo "ok: what the model refuses"

# table ERROR LINE...: a train.csv with these lines is refused with this error.
mkdir table
table() {
  local error=$1
  shift
  printf '%s\n' "$@" >table/train.csv
  says "$error" 2 "$ddprun" validate dataset_csv/config.toml --plugin-path dataset_csv/build --set data.root=table \
    --set train.evaluate=false
}
table 'table/train.csv:3:3: "one": expected a number' x,inside 1,0 2,one
table 'table/train.csv:2:1: expected 2 numbers, got 1' x,inside '1;0'
table 'table/train.csv:3:5: expected 2 numbers, got 3' x,inside 1,0 2,1,1
table 'table/train.csv:2:3: a class is a whole number' x,inside 1,0.5
table 'table/train.csv:2:3: "nan": expected a number' x,inside 1,nan
table 'table/train.csv:1:3: "x": the second column of this name' x,x,inside 1,1,0
table 'data.options.target = "inside": expected "x" or "insid"' x,insid 1,0
echo 'x,inside' >table/test.csv
echo '1,2' >>table/test.csv
table 'table/test.csv:2:3: a class that train.csv does not have' x,inside 1,0 2,1
rm table/test.csv
printf 'x;price\r\n1;2.5\r\n2;5\r\n3;7.5\r\n\r\n' >table/train.csv
says 'run folder: ' 0 "$ddprun" --config dataset_csv/config.toml --plugin-path dataset_csv/build --set data.root=table \
  --set train.evaluate=false --set model.name=linear --set 'model.options={}' --set data.batch_size=1 \
  --set 'data.options={ task = "regression", delimiter = ";" }'
echo "ok: what the data set refuses, and regression"

backends=(--plugin-path comm_tcp_ring/build --plugin-path comm_shm_direct/build)
says 'tcp_ring' 0 "$ddprun" bench --backend tcp_ring,shm_direct "${backends[@]}" -b 4K -e 1M -f 16 -n 5 --rounds 2 \
  --option tcp_ring.chunk=16KiB
grep -q 'shm_direct' "$box/said" || fail "bench: $(<"$box/said")"
says 'comm.options.chunk' 2 "$ddprun" validate comm_tcp_ring/config.toml "${backends[@]}" --set comm.options.chunk=1KiB
says 'shm_direct' 0 "$ddprun" compare --config comm_tcp_ring/config.toml --vary comm.backend=tcp_ring,shm_direct \
  "${backends[@]}" --repeats 2
echo "ok: bench and compare"
if [[ -n $mpi ]]; then
  says 'start the job as mpirun -n 2 ddprun --config ...' 3 \
    "$ddprun" --config comm_mpi/config.toml --plugin-path comm_mpi/build --set launch.nproc=2
  says 'mpi/mpi' 0 mpirun -n 2 "$ddprun" bench --backend mpi,gloo --plugin-path comm_mpi/build -b 4K -e 1M -f 16 -n 5 \
    --rounds 2
  echo "ok: comm_mpi without mpirun, and bench"
fi

for name in tcp_ring shm_direct; do
  python3 "$tests/lost_rank_test.py" "$PWD/comm_$name/build/libddprun_comm_$name.so" ||
    fail "$name, when a rank is killed"
done
echo "ok: every rank names a rank that was killed"

# On several hosts, which the suite makes: that needs root.
code=0
"$ddprun" conformance --plugin tcp_ring "${backends[@]}" --hosts 2x1 --slack 15000 --filter 'float32 sum count' \
  >"$box/hosts" 2>&1 || code=$?
if [[ $code == 77 ]]; then
  echo "skipped: several hosts: $(tail -1 "$box/hosts")"
else
  [[ $code == 0 ]] || fail "tcp_ring over two hosts: $(<"$box/hosts")"
  says 'shm_direct needs all ranks on one host' 6 \
    "$ddprun" conformance --plugin shm_direct "${backends[@]}" --hosts 2x1 --filter lifetime
  echo "ok: several hosts"
fi
