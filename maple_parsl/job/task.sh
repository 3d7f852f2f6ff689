#!/bin/sh
# shellcheck disable=SC2317 # functions called from traps
# Runs one command of the job on one node, watches it, and notes the first failure of the whole job.
#   task.sh device COMMAND...   started once per device by the site's launcher
#   task.sh node COMMAND...     started once per node by the site's launcher
#   task.sh worker COMMAND...   started once per device by a framework's own launcher
# Plain sh: works under dash and bash, inside containers too.
set -u

say() { printf 'maple: %s\n' "$*" >&2; }

refuse() { # refuse CLASS TEXT: what is wrong with the launch, for the exit record too; the first who speaks is heard
  say "$2"
  note=$MAPLE_ATTEMPT_DIR/verdict.$(uname -n).$$
  printf '{"verdict":"stop","findings":[{"class":"%s","severity":"error","message":"%s"}]}\n' "$1" "$2" >"$note" &&
    ln "$note" "$MAPLE_ATTEMPT_DIR/verdict.json" 2>/dev/null || [ -e "$MAPLE_ATTEMPT_DIR/verdict.json" ] ||
    mv -f "$note" "$MAPLE_ATTEMPT_DIR/verdict.json" # no hard links here
  rm -f "$note"
  exit 78
}

first_set() { # first_set NAMES: value of the first variable of the list that is set
  value=
  for name in $1; do
    eval "value=\${$name-}"
    [ -z "$value" ] || return 0
  done
  return 1
}

mode=$1
shift
if [ "$mode" != worker ]; then
  first_set "$MAPLE_RANK_VARS" ||
    refuse MPI_PMI "the launcher set none of: $MAPLE_RANK_VARS (is this started by the launcher the script names?)"
  place=$value
  # Under a launcher that does not know it is in a parallel job, each process believes to be alone.
  if first_set "$MAPLE_SIZE_VARS" && [ "$value" != "$MAPLE_TASKS" ]; then
    refuse LAUNCHER_TASK_MISMATCH "process $place sees $value processes where the launch has $MAPLE_TASKS"
  fi
  if [ "$mode" = device ]; then
    RANK=$place
    if first_set "$MAPLE_LOCAL_VARS"; then local_rank=$value; else local_rank=$((RANK % MAPLE_LOCAL_SIZE)); fi
    NODE_RANK=$((RANK / MAPLE_LOCAL_SIZE))
    MAPLE_LOCAL_RANK=$local_rank
    # Where the launcher hides the other devices, this process's own device is number 0.
    [ "$MAPLE_ONE_DEVICE" = 0 ] || local_rank=0
    LOCAL_RANK=$local_rank
    WORLD_SIZE=$MAPLE_TASKS
    LOCAL_WORLD_SIZE=$MAPLE_LOCAL_SIZE
    export RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MAPLE_LOCAL_RANK
  else
    if first_set "$MAPLE_NODE_VARS"; then NODE_RANK=$value; else NODE_RANK=$place; fi
  fi
  export NODE_RANK
  if [ -n "$MAPLE_VISIBLE_NAME" ]; then # set here, as launchers overwrite what the batch shell exported
    eval "export $MAPLE_VISIBLE_NAME=\$MAPLE_VISIBLE_DEVICES"
  fi
fi

catches_usr1() { # whether process $1 handles SIGUSR1, which would end it otherwise
  caught=
  while read -r key mask _; do
    [ "$key" = SigCgt: ] && caught=$mask
  done 2>/dev/null <"/proc/$1/status"
  case $caught in
    *[2367abefABEF]??) return 0 ;; # bit 9: SIGUSR1 is 10 on Linux
    *) return 1 ;;
  esac
}

tell_usr1() { # to the process and everything it started
  for pid in "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    [ "$pid" = "$1" ] || { tell_usr1 "$pid"; continue; }
    ! catches_usr1 "$pid" || kill -s USR1 "$pid" 2>/dev/null
  done
}

asked=
ending=
early=
forward() {
  asked=1
  if [ -z "$child" ]; then # not started yet: kept until it is
    early="$early $1"
    return 0
  fi
  if [ "$1" = USR1 ]; then
    tell_usr1 "$child"
  else
    ending=1
    kill -s TERM "$child" 2>/dev/null
  fi
}

child=
trap 'forward USR1' USR1
trap 'forward TERM' TERM
trap 'forward INT' INT
"$@" &
child=$!
for signal in $early; do forward "$signal"; done
if [ "${MAPLE_POLL_LIMIT:-0}" = 1 ] && [ "$mode" != worker ]; then
  (
    trap - USR1 TERM INT
    while kill -0 "$child" 2>/dev/null; do
      if [ -e "$MAPLE_ATTEMPT_DIR/limit" ]; then kill -s USR1 $$; break; fi
      sleep 5
    done
  ) &
fi
if [ -n "${MAPLE_SAMPLE:-}" ] && [ "$mode" != node ]; then
  (trap - USR1 TERM INT; exec sh "$MAPLE_SAMPLE" "$child") </dev/null >/dev/null 2>&1 &
fi
while :; do
  asked=
  wait "$child"
  code=$?
  if [ -z "$asked" ] || ! kill -0 "$child" 2>/dev/null; then break; fi
done
if [ -n "$asked" ]; then # a signal and the end came together: ask once more for the real code
  wait "$child" 2>/dev/null
  again=$?
  [ "$again" -eq 127 ] || code=$again
fi

# The first process that fails of itself owns the record; those ended by others do not count. The launcher of
# a framework fails because a worker did, so it speaks only when no worker has.
if [ "$code" -ne 0 ] && [ -z "$ending" ]; then
  [ "$mode" != node ] || sleep 1
  if mkdir "$MAPLE_ATTEMPT_DIR/failed" 2>/dev/null; then
    printf '{"rank":%s,"local_rank":%s,"node_rank":%s,"host":"%s","code":%d,"at":%d}\n' \
      "${RANK:-null}" "${MAPLE_LOCAL_RANK:-${LOCAL_RANK:-null}}" "${NODE_RANK:-${GROUP_RANK:-null}}" \
      "$(uname -n)" "$code" "$(date +%s)" >"$MAPLE_ATTEMPT_DIR/failure.tmp" &&
      mv -f "$MAPLE_ATTEMPT_DIR/failure.tmp" "$MAPLE_ATTEMPT_DIR/failure.json"
    who=${RANK:+rank $RANK}
    say "${who:-the launcher of node ${NODE_RANK:-?}} on $(uname -n) is the first to fail, with code $code"
  fi
fi
exit "$code"
