# shellcheck shell=bash
# shellcheck disable=SC2317 # functions called from traps
# One job of a chain. All of them keep their checkpoints in one folder. The first that succeeds, and the second
# that fails in the same way, takes the jobs behind it out of the queue.
eval "maple_plain_$(declare -f maple_record)" # maple_plain_maple_record: the exit record alone

maple_record() { # maple_record CODE REASON: the exit record, and what it means for the jobs behind
  local said="$2 with code $1"
  maple_plain_maple_record "$@"
  case $2 in
    done) maple_chain_stop "job $MAPLE_LINK of $MAPLE_LINKS succeeded" ;;
    failed | setup | allocation)
      if [ -e "$MAPLE_ATTEMPT_DIR/limit" ]; then # it was told of the walltime, and may stop as it likes
        rm -f "$MAPLE_CHAIN_DIR/failure"
      elif [ "$(cat "$MAPLE_CHAIN_DIR/failure" 2>/dev/null)" = "$said" ]; then
        maple_chain_stop "two jobs in a row ended the same way: $said"
      else
        printf '%s\n' "$said" | maple_put "$MAPLE_CHAIN_DIR/failure"
      fi
      ;;
    *) rm -f "$MAPLE_CHAIN_DIR/failure" ;;
  esac
}

maple_chain_stop() { # maple_chain_stop WHY: what still waits is not needed any more
  local number name
  printf '%s\n' "$1" | maple_put "$MAPLE_CHAIN_DIR/stop"
  for ((number = MAPLE_LINK + 1; number <= MAPLE_LINKS; number++)); do
    name=maple-$MAPLE_CHAIN-$number
    if command -v scancel >/dev/null 2>&1; then
      scancel --name="$name" --user="$(id -un)" >/dev/null 2>&1
    elif command -v qselect >/dev/null 2>&1; then
      qselect -N "$name" | while read -r id; do qdel "$id" >/dev/null 2>&1; done
    fi
  done
  return 0
}

maple_chain_begin() {
  if [ -e "$MAPLE_CHAIN_DIR/stop" ]; then
    maple_say "nothing is left to do: $(cat "$MAPLE_CHAIN_DIR/stop")"
    trap - EXIT
    maple_plain_maple_record 0 skipped
    exit 0
  fi
  mkdir -p "$MAPLE_CHAIN_DIR/checkpoints" || maple_stop 73 setup "cannot write $MAPLE_CHAIN_DIR"
  [ -e "$MAPLE_RUN_DIR/checkpoints" ] || ln -s ../checkpoints "$MAPLE_RUN_DIR/checkpoints"
}
