#!/usr/bin/env bash
# headers_test.sh BUILD TORCH_DIR: the public headers of an installation, which is moved. Each is compiled by itself: all
# in C++20, those outside of plugin/ in C++17 too, and the C headers in C11 and C++17. Headers with Torch, which take
# long, are compiled together, and in reverse order: in C++17, or in C++20 if Torch needs it. Folders named detail are
# not public.
set -euo pipefail
build=$1 torch=$2
source "$(dirname "$0")/moved_prefix.sh"
strict=(-Wall -Wextra -Wpedantic -Werror "-I$prefix/include")
with_torch=(-isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include")

# compile STANDARD "HEADER..." [OPTION...]
failed=no
compile() {
  local standard=$1 headers=$2 source=$box/$1-$BASHPID.cpp
  shift 2
  if [[ $standard == c11 ]]; then source=${source%.cpp}.c; fi
  # shellcheck disable=SC2086
  { printf '#include <%s>\n' $headers; echo 'int not_empty;'; } >"$source"
  gcc "-std=$standard" "${strict[@]}" "$@" -c "$source" -o "$source.o" >"$source.log" 2>&1 && return
  echo "$headers, in $standard:"
  head -n 30 "$source.log"
  failed=yes
}

oldest=c++17
if grep -q -e -std=c++20 "$build/ddprun-ddp.pc"; then oldest=c++20; fi

cd "$prefix/include"
torch_headers='' torch_free=()
for header in $(find ddprun -name detail -prune -o -name '*.h*' -print | sort); do
  if g++ -x c++ -std=c++20 "${strict[@]}" -M -MG "$header" | grep torch/torch.h >/dev/null; then
    torch_headers+=" $header"
  else
    torch_free+=("$header")
  fi
done
[[ " ${torch_free[*]} " == *" ddprun/ddprun.h "* ]] || fail "ddprun/ddprun.h is not among the headers: ${torch_free[*]}"
for needed in ddprun/ddp.hpp ddprun/group.hpp ddprun/plugin/model_plugin.hpp; do
  [[ $torch_headers == *" $needed"* ]] || fail "$needed should be among the headers with Torch:$torch_headers"
done

{
  # The library's.
  reversed=$(tr ' ' '\n' <<<"$torch_headers" | grep -v /plugin/ | tac | tr '\n' ' ')
  compile "$oldest" "$reversed" "${with_torch[@]}"
  for header in "${torch_free[@]}"; do
    case $header in
      *.h) compile c11 "$header"; compile c++17 "$header" ;;
      ddprun/plugin/*) ;;
      *) compile c++17 "$header" ;;
    esac
  done
  [[ $failed == no ]]
} &
compile c++20 "$torch_headers" "${with_torch[@]}"
for header in "${torch_free[@]}"; do compile c++20 "$header"; done
wait $! || failed=yes
[[ $failed == no ]] || fail "see above"
echo "ok: ${#torch_free[@]} headers without Torch, and$torch_headers"
