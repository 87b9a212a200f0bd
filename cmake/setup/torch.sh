# Where LibTorch comes from. Sourced by setup.sh and find-torch.
# shellcheck source=cmake/setup/pins.sh
. "$setup/pins.sh"
torch_oldest=2.7
torch_venv=${XDG_CACHE_HOME:-${HOME:?set HOME, or XDG_CACHE_HOME, for the folder of our LibTorch}/.cache}/ddprun/torch-2.11.0

# Sets torch_found to the version in a LibTorch folder; fails where there is none.
torch_version_in() {
  local header
  torch_found=''
  [[ -e $1/include/ATen/ATen.h && -e $1/lib/libtorch_cpu.so ]] || return 1
  for header in torch/headeronly/version.h torch/csrc/api/include/torch/version.h; do  # since 2.10, and before
    [[ -e $1/include/$header ]] || continue
    torch_found=$(awk '/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $3; dot = "." }' \
      "$1/include/$header")
    [[ $torch_found ]] && return
  done
  torch_found=unknown
}

# True where the folder holds a LibTorch that is new enough; one that is too old is named in torch_notes.
torch_usable() {
  torch_version_in "$1" || return 1
  printf '%s\n' "$torch_oldest" "$torch_found" | sort -V --check=quiet && [[ $torch_found != unknown ]] && return
  torch_notes+=("Torch $torch_found in $1 (from $2) is not used: ddprun needs $torch_oldest or later")
  return 1
}

# The active Python's torch folder, found without importing torch or anything in the current folder.
python_torch_dir() {
  command -v python3 >/dev/null || return 1
  python3 -c '
import sys
sys.path = [p for p in sys.path if p]
import importlib.util, os
spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    sys.exit(1)
print(os.path.dirname(os.path.realpath(spec.origin)))' 2>/dev/null
}

# Looks for a Torch that the user has; sets torch_dir, torch_origin and torch_notes. DDPRUN_TORCH_DIR is an order: what
# it names is used or refused. The other two are offers, passed over where they hold no Torch, or one too old.
find_existing_torch() {
  local prefix prefixes candidate
  torch_dir='' torch_origin='' torch_notes=()
  if [[ ${DDPRUN_TORCH_DIR:-} ]]; then
    torch_origin=DDPRUN_TORCH_DIR
    if torch_usable "$DDPRUN_TORCH_DIR" "$torch_origin"; then
      torch_dir=$(realpath "$DDPRUN_TORCH_DIR")
      return
    fi
    ((${#torch_notes[@]})) ||
      torch_notes=("DDPRUN_TORCH_DIR=$DDPRUN_TORCH_DIR has no include/ATen/ATen.h and lib/libtorch_cpu.so")
    return 2
  fi
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    for candidate in "$prefix" "$prefix/../.."; do  # torch.utils.cmake_prefix_path is .../torch/share/cmake
      if [[ $prefix ]] && torch_usable "$candidate" CMAKE_PREFIX_PATH; then
        torch_dir=$(realpath "$candidate") torch_origin=CMAKE_PREFIX_PATH
        return
      fi
    done
  done
  if candidate=$(python_torch_dir) && torch_usable "$candidate" "python3 on the PATH"; then
    torch_dir=$candidate torch_origin=python3
    return
  fi
  return 1
}

# The Torch of our own environment, where it is complete.
find_own_torch() {
  local candidate
  [[ ! $(pins_missing "$torch_venv" "$setup/torch-cpu.txt") ]] || return 1
  for candidate in "$torch_venv"/lib/python3*/site-packages/torch; do
    if torch_version_in "$candidate"; then
      torch_dir=$candidate torch_origin=$torch_venv
      return
    fi
  done
  return 1
}

has_nvidia_driver() { [[ -e /proc/driver/nvidia/version ]] || command -v nvidia-smi >/dev/null; }

# need_torch program|tests: sets torch_dir, and torch_python to the Python that has it ("" where none does). With
# `tests`, that Python also has what the comparisons with PyTorch import.
need_torch() {
  local status=0 size='1.2 GB' lists=("$setup/torch-cpu.txt")
  torch_python=''
  find_existing_torch || status=$?
  ((status == 2)) && fail "LibTorch: ${torch_notes[*]}"
  if ((status == 0)); then
    torch_python=$(python_of_torch "$torch_dir") || true
    return
  fi
  if has_nvidia_driver || [[ $1 == tests ]]; then lists+=("$setup/torch-full.txt") size='4.6 GB'; fi
  if [[ $1 == tests ]]; then lists+=("$setup/torch-tests.txt"); fi
  if [[ $(pins_missing "$torch_venv" "${lists[@]}") ]]; then
    local note
    for note in "${torch_notes[@]}"; do say "$note"; done
  fi
  need_environment torch "Torch 2.11.0, at most $size" "$torch_venv" "${lists[@]}"
  find_own_torch || fail "LibTorch: $torch_venv holds no Torch although its stamp says so; remove it and run again"
  torch_python=$torch_venv/bin/python
}

# The pins of each Torch that is tested, a line each, oldest first.
torch_table() {
  { entries "$setup/torch-cpu.txt" | paste -sd ' '; entries "$setup/torch-versions.txt"; } | sort -V
}

# "2.7 2.8 ..."
torch_versions() { torch_table | sed -E 's/^torch==([0-9]+\.[0-9]+).*/\1/' | paste -sd ' '; }

# need_torch_version VERSION: sets version_dir to this Torch, which has an environment of its own. Without most libraries of
# CUDA, its Python cannot import it. So version_python, for the comparisons, is DDPRUN_PYTHON where that has the same
# Torch, or the Python that the tests of our own Torch use; else "".
need_torch_version() {
  local pins version venv list=$logs/torch-$1.txt
  pins=$(torch_table | grep "^torch==${1//./\\.}\.")
  read -r version _ <<<"${pins#torch==}"
  venv=${torch_venv%/*}/torch-$version
  tr ' ' '\n' <<<"$pins" >"$list"
  need_environment "torch-$1" "Torch $version, at most 1.8 GB" "$venv" "$list"
  for version_dir in "$venv"/lib/python3*/site-packages/torch; do :; done
  torch_version_in "$version_dir" ||
    fail "LibTorch: $venv holds no Torch although its stamp says so; remove it and run again"
  version_python=${DDPRUN_PYTHON:-$venv/bin/python}
  [[ $(python_torch_version "$version_python") == "$version" ]] && python_compares "$version_python" ||
    version_python=''
}

# The version of the Torch that a Python has, found without importing it: without what is behind "+".
python_torch_version() {
  "$1" -c 'import importlib.metadata; print(importlib.metadata.version("torch").partition("+")[0])' 2>/dev/null
}

# The Python that imports the Torch of this folder: .../lib/python3.x/site-packages/torch belongs to .../bin/python3.
python_of_torch() {
  local python
  for python in "$(realpath "$1/../../../..")/bin/python3" python3; do
    command -v "$python" >/dev/null || continue
    [[ $(PATH=$(dirname "$(command -v "$python")"):$PATH python_torch_dir) == "$1" ]] && command -v "$python" && return
  done
  return 1
}

# python_imports PYTHON MODULE...: true where it would find them all, without importing them.
python_imports() {
  [[ $1 ]] && "$1" -c '
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))' "${@:2}"
}

# True where the Python has all that the comparisons with PyTorch import.
python_compares() { python_imports "$1" torch torchvision numpy safetensors PIL; }
