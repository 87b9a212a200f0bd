# What the set-up shows while it works, so that no minute is silent. Sourced by setup.sh. On a terminal a line that changes
# in place; elsewhere a line every $progress_every seconds.
progress_every=${DDPRUN_PROGRESS_EVERY:-20}

# in_place TEXT: replaces the line that the cursor is in.
in_place() { printf '\r%s\033[K' "$*" >&2; }

# "40 s", "2 min 05 s"
duration() {
  if (($1 < 60)); then echo "$1 s"; else printf '%d min %02d s\n' $(($1 / 60)) $(($1 % 60)); fi
}

# while_ticking NAME LOG COMMAND...: runs the command into the log, and says meanwhile how long it has taken.
while_ticking() {
  local name=$1 log=$2 status=0
  shift 2
  tick "$name" 8>&- 9>&- &  # without the locks
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_ticking
  return "$status"
}

# Nothing is printed by the ticker after this. An interrupt (Ctrl-C) does not reach a background process, so the trap of
# setup.sh calls this too.
ticker=''
stop_ticking() {
  [[ $ticker ]] || return 0
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  ticker=''
  if [[ -t 2 ]]; then in_place; fi
}

# Ends with the set-up at the latest, however that is ended.
tick() {
  local seconds
  for ((seconds = 1; ; ++seconds)); do
    sleep 1
    kill -0 $$ 2>/dev/null || return
    if [[ -t 2 ]]; then
      in_place "ddprun: set-up: $1: $(duration "$seconds")"
    elif ((seconds % progress_every == 0)); then
      say "$1: $(duration "$seconds") so far"
    fi
  done
}

# show_build NAME LOG: reads what ninja prints; says that NAME begins and, from then on, how far it is.
show_build() {
  local line='' part status began='' said=0 state=''
  while true; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+=$part
    if ((status == 0)); then
      # "[0/1] Re-checking globbed directories" is no work.
      if [[ $line =~ ^\[([1-9][0-9]*)/([0-9]+)\] ]]; then
        if [[ ! $began ]]; then
          say "$1 (log: $2)"
          began=$SECONDS said=$SECONDS
        fi
        state="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} files$(time_left $((SECONDS - began)) "${BASH_REMATCH[@]:1}")"
      fi
      line=''
    elif ((status <= 128)); then  # not that the second is over
      break
    fi
    [[ $began ]] || continue
    if [[ -t 2 ]]; then
      in_place "ddprun: set-up: $1: $state"
    elif ((SECONDS - said >= progress_every)); then
      say "$1: $state"
      said=$SECONDS
    fi
  done
  if [[ $began && -t 2 ]]; then in_place; fi
}

# time_left SECONDS DONE TOTAL: ", about 3 min left", once that can be guessed.
time_left() {
  local left
  (($1 >= 10)) || return 0
  left=$(($1 * ($3 - $2) / $2))
  if ((left < 60)); then echo ", less than a minute left"; else echo ", about $(((left + 30) / 60)) min left"; fi
}
