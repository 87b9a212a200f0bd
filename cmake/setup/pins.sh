# Environments of pinned Python packages, each in a folder of its own. Sourced by torch.sh, for it, ucx.sh,
# nccl.sh, charts.sh, site.sh and wheels.sh.

# A list file's entries, without comments.
entries() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

# pins_missing VENV LIST...: what of the lists the environment's stamp does not vouch for. The stamp holds the pins that
# were installed and found whole; it is written last, so an interrupted installation has none.
pins_missing() {
  entries "${@:2}" | sort -u | comm -23 - <(sort "$1/ddprun-complete.txt" 2>/dev/null)
}

# pins_incomplete VENV LIST...: what of the lists the environment does not hold whole, by its content.
pins_incomplete() {
  local pins
  mapfile -t pins < <(entries "${@:2}" | sort -u)
  "$1/bin/python" "$setup/incomplete.py" "${pins[@]}" 2>/dev/null || printf '%s\n' "${pins[@]}"
}

# install_pins VENV PIN...: without pip's own cache: this environment is the cache. Without resolving: the lists are
# complete.
install_pins() {
  local venv=$1 python=$1/bin/python
  shift
  { [[ -x $python ]] && "$python" -m pip --version; } || /usr/bin/python3 -m venv --clear "$venv" || return
  "$python" -m pip --disable-pip-version-check install --no-deps --no-cache-dir --no-compile --progress-bar off "$@"
}

# need_environment NAME CONTENT VENV LIST...: the environment, with everything that the lists name. NAME is that of its
# log, CONTENT says what it holds and its size.
need_environment() {
  local name=$1 content=$2 venv=$3 missing stamp=$3/ddprun-complete.txt
  shift 3
  [[ $(pins_missing "$venv" "$@") ]] || return 0
  mkdir -p "$venv" 2>/dev/null && [[ -w $venv ]] ||
    fail "cannot write $venv; set XDG_CACHE_HOME to a folder for what the set-up downloads"
  lock 8 "$venv.lock" "$venv"
  mapfile -t missing < <(pins_incomplete "$venv" "$@")
  if ((${#missing[@]})); then
    step "$name.log" "installing ${#missing[@]} Python packages ($content) into $venv" \
      install_pins "$venv" "${missing[@]}"
    mapfile -t missing < <(pins_incomplete "$venv" "$@")
    ((${#missing[@]} == 0)) || fail "still incomplete after pip: ${missing[*]}; log: $logs/$name.log"
  fi
  { cat "$stamp" 2>/dev/null || true; entries "$@"; } | sort -u >"$stamp.new"
  mv "$stamp.new" "$stamp"
  exec 8>&-
}
