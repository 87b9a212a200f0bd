#!/usr/bin/env bash
# torch_free_test.sh PROGRAM...: no tool needs LibTorch or libddprun, not even through another library, and each tool's
# help starts with a description, which `ddprun --help` shows.
set -euo pipefail
failed=0
for program in "$@"; do
  if needed=$(ldd "$program" | grep -E 'libtorch|libc10|libddprun'); then
    echo "FAILED: $program needs $needed"
    failed=1
  fi
  # Read to the end: `| head -n 1` would end the program by SIGPIPE when head leaves first.
  help=$("$program" --help) || { echo "FAILED: $program --help ended with $?" && failed=1 && continue; }
  first=${help%%$'\n'*}
  if [[ ! $first || $first == Usage* ]]; then
    echo "FAILED: $program --help begins with: $first"
    failed=1
  fi
done
exit "$failed"
