#!/usr/bin/env bash
# completion_test.sh BIN SHELL: what the completion of SHELL offers for the beginning of a command line. Ends with 77 if the
# shell is not installed.
set -euo pipefail
bin=$1 shell=$2
if ! command -v "$shell" >/dev/null; then
  echo "skipped: $shell is not installed: apt install $shell"
  exit 77
fi
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
touch "$box/quick.toml"
"$bin/ddprun" completion "$shell" >"$box/completion"
cd "$box"

# offers LINE: the words that the shell offers for the last word of LINE, one a line; zsh prints the completed line.
case $shell in
  bash)
    offers() {
      bash -c 'source ./completion; read -ra COMP_WORDS <<<"$1"; [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ddprun; printf "%s\n" "${COMPREPLY[@]}"' offers "$1"
    }
    ;;
  fish)
    export HOME=$box
    # shellcheck disable=SC2016 # fish expands it
    offers() { fish -c 'source ./completion; complete -C "$argv[1]"' "$1" | cut -f 1; }
    ;;
  zsh)
    offers() {
      zsh -f -c '
        zmodload zsh/zpty
        zpty shell zsh -f
        zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source ./completion; print read\y"
        zpty -r shell line "*ready*"
        zpty -w -n shell "$1"$'"'\t'"'
        for ((i = 0; i < 100; ++i)); do
          sleep 0.02
          while zpty -r -t shell line; do all+=$line; done
          [[ $all != *"$2"* ]] || break
        done
        print -r -- "$all"' offers "$1" "$2" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr ' \r' '\n\n'
    }
    ;;
esac

expect() {
  offers "$1" "$2" >offered
  grep -qx -- "$2" offered || {
    echo "$shell: \"$1\": expected $2, offered: $(<offered)"
    exit 1
  }
}
expect "ddprun eval" evaluate
expect "ddprun compl" completion
expect "ddprun bench --backe" --backend
expect "ddprun data inf" info
expect "ddprun data info --split te" test
expect "ddprun new --language ru" rust
expect "ddprun completion fi" fish
expect "ddprun --config qu" quick.toml
expect "ddprun launch -n 2 qu" quick.toml
# Its names are so long that one blank stands before the description.
[[ $shell == bash ]] || grep -q 'The rank that broadcasts' completion || { echo "$shell: bench --root is not described"; exit 1; }

for wrong in "" tcsh "bash zsh"; do
  # shellcheck disable=SC2086 # several words
  "$bin/ddprun" completion $wrong >out 2>err && code=0 || code=$?
  [[ $code == 2 && ! -s out && $(wc -l <err) == 1 ]] || { echo "completion $wrong: exit $code: $(<err)"; exit 1; }
done
