# shellcheck shell=bash
# shellcheck disable=SC2317 # functions called from traps
# Runs in the batch shell. Everything a later reader needs is left in files of the run directory, each put in
# place by a rename, so that no reader ever sees half of one.

maple_say() { printf 'maple: %s\n' "$*" >&2; }

maple_put() { # maple_put FILE: standard input becomes FILE, at once and whole
  cat >"$1.$MAPLE_JOB_ID.tmp" && mv -f "$1.$MAPLE_JOB_ID.tmp" "$1"
}

# A link is made with its target in one step, so a claim never lacks its owner. The same job may claim again
# after a requeue; any other job has been submitted twice and must not run.
maple_claim() {
  mkdir -p "$MAPLE_RUN_DIR/attempts" "$MAPLE_RUN_DIR/bin" || { maple_say "cannot write $MAPLE_RUN_DIR"; exit 73; }
  if ! ln -sn "$MAPLE_JOB_ID" "$MAPLE_RUN_DIR/claim" 2>/dev/null; then
    local owner
    owner=$(readlink "$MAPLE_RUN_DIR/claim") || { maple_say "cannot write $MAPLE_RUN_DIR/claim"; exit 73; }
    if [ "$owner" != "$MAPLE_JOB_ID" ]; then
      maple_say "this run belongs to job $owner; job $MAPLE_JOB_ID was submitted twice and ends here"
      exit 0
    fi
  fi
  MAPLE_ATTEMPT=1
  while ! mkdir "$MAPLE_RUN_DIR/attempts/$MAPLE_ATTEMPT" 2>/dev/null; do
    [ -d "$MAPLE_RUN_DIR/attempts/$MAPLE_ATTEMPT" ] || { maple_say "cannot write $MAPLE_RUN_DIR/attempts"; exit 73; }
    MAPLE_ATTEMPT=$((MAPLE_ATTEMPT + 1))
  done
  MAPLE_ATTEMPT_DIR=$MAPLE_RUN_DIR/attempts/$MAPLE_ATTEMPT
  [ "$MAPLE_ATTEMPT" -eq 1 ] || MAPLE_RESUME=1
  export MAPLE_ATTEMPT MAPLE_ATTEMPT_DIR MAPLE_RESUME="${MAPLE_RESUME:-0}"
  if [ -e "$MAPLE_RUN_DIR/exit.json" ]; then # of an attempt that was cut short
    mv -f "$MAPLE_RUN_DIR/exit.json" "$MAPLE_RUN_DIR/attempts/$((MAPLE_ATTEMPT - 1))/exit.json"
  fi
  MAPLE_STARTED=$(date +%s)
  printf '{"job_id":"%s","attempt":%d,"host":"%s","started":%d}\n' \
    "$MAPLE_JOB_ID" "$MAPLE_ATTEMPT" "$(uname -n)" "$MAPLE_STARTED" | maple_put "$MAPLE_RUN_DIR/started.json"
  MAPLE_EARLY='' # the walltime may be near before the launch is
  maple_before_launch
  trap 'maple_unfinished $?' EXIT
}

maple_before_launch() { # signals while nothing is launched
  MAPLE_LAUNCHER_PID='' MAPLE_TIMER_PID='' MAPLE_LIMIT_PID='' MAPLE_WATCH_PID='' MAPLE_LIMIT=0
  trap 'maple_stop 143 terminated "ended from outside before the launch"' TERM INT HUP
  trap 'MAPLE_EARLY=USR1' USR1
}

maple_unfinished() { # maple_unfinished STATUS: the shell ends, and nothing above it has written the record
  set +eu
  trap - EXIT
  local code=$1 reason=setup
  [ "$code" -ne 0 ] || code=1
  if [ -n "${MAPLE_LAUNCHER_PID:-}" ]; then
    reason=terminated
    kill -s TERM "$MAPLE_LAUNCHER_PID" 2>/dev/null
  else
    maple_say "a set-up line ended the script before its launch, with code $1 (exit, set -e, or a line that is not whole)"
  fi
  maple_record "$code" "$reason"
  exit "$code"
}

maple_record() { # maple_record CODE REASON: the exit record
  local failure=null verdict=null stalled=null
  [ -s "$MAPLE_ATTEMPT_DIR/stalled.json" ] && stalled=$(head -n 1 "$MAPLE_ATTEMPT_DIR/stalled.json")
  [ -s "$MAPLE_ATTEMPT_DIR/failure.json" ] && failure=$(head -n 1 "$MAPLE_ATTEMPT_DIR/failure.json")
  [ -s "$MAPLE_ATTEMPT_DIR/verdict.json" ] && verdict=$(head -n 1 "$MAPLE_ATTEMPT_DIR/verdict.json")
  printf '{"format":1,"job_id":"%s","attempt":%d,"code":%d,"reason":"%s","signal":%s,"first_failure":%s,"preflight":%s,"watchdog":%s,"started":%d,"ended":%d,"hosts":"%s"}\n' \
    "$MAPLE_JOB_ID" "$MAPLE_ATTEMPT" "$1" "$2" "$([ "$1" -gt 128 ] && echo $(($1 - 128)) || echo null)" \
    "$failure" "$verdict" "$stalled" "$MAPLE_STARTED" "$(date +%s)" "$MAPLE_HOSTS" | maple_put "$MAPLE_RUN_DIR/exit.json"
}

maple_stop() { # maple_stop CODE REASON TEXT: the launch cannot go on
  trap - EXIT
  maple_say "$3"
  maple_record "$1" "$2"
  exit "$1"
}

maple_check() { # maple_check STATUS LINE: a set-up line must succeed
  [ "$1" -eq 0 ] || maple_stop "$1" setup "this set-up line failed with code $1: $2"
}

# From the job's id, so that two jobs on a shared node do not meet; below 32768, where kernels hand out ports to anyone; the next one if somebody listens there.
maple_port() {
  local id=${MAPLE_JOB_ID#local-} element=0 tries=0
  case $id in
    *_[0-9]*) element=${id#*_} ;;        # Slurm: 12_3
    *"["[0-9]*) element=${id#*"["} ;;    # PBS: 12[3].server
  esac
  id=${id%%[!0-9]*} element=${element%%[!0-9]*}
  MASTER_PORT=$((20000 + (10#${id:-0} + 10#${element:-0}) % 12000))
  while [ "$tries" -lt 20 ] && (exec 3<>"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null; do
    MASTER_PORT=$((MASTER_PORT + 1)) tries=$((tries + 1))
  done
}

maple_forward() { # maple_forward SIGNAL: to the launcher, which hands it to every process
  MAPLE_TOLD=1
  if [ -z "$MAPLE_LAUNCHER_PID" ]; then # not started yet: kept until it is
    MAPLE_EARLY="$MAPLE_EARLY $1"
    return 0
  fi
  if [ "$1" = USR1 ]; then
    : >"$MAPLE_ATTEMPT_DIR/limit"
    # ibrun is a shell script that a USR1 would kill: its processes look for the file instead.
    [ "$MAPLE_FORWARD_USR1" = 1 ] && kill -s USR1 "$MAPLE_LAUNCHER_PID" 2>/dev/null
    maple_say "the walltime is near: processes that catch USR1 were told to write a checkpoint"
    [ "$MAPLE_REQUEUE" = 1 ] && maple_requeue_soon
  else
    MAPLE_ENDED_BY=$1
    maple_record 143 terminated # at once: the scheduler may kill this shell before the processes are gone
    kill -s TERM "$MAPLE_LAUNCHER_PID" 2>/dev/null
  fi
  return 0
}

maple_requeue_soon() { # the processes get half of the time left for their checkpoint
  (
    sleep "$((MAPLE_LEAD / 2))"
    kill -0 "$MAPLE_LAUNCHER_PID" 2>/dev/null || exit 0
    : >"$MAPLE_ATTEMPT_DIR/requeued"
    scontrol requeue "$MAPLE_JOB_ID"
  ) &
}

# Runs the launcher, forwards signals to it, and keeps its exit code; wait returns early when a signal comes.
maple_launch() {
  local signal
  MAPLE_TOLD='' MAPLE_ENDED_BY='' MAPLE_LAUNCHER_PID=''
  trap 'maple_forward TERM' TERM
  trap 'maple_forward INT' INT
  trap 'maple_forward HUP' HUP
  trap 'maple_forward USR1' USR1
  "$@" &
  MAPLE_LAUNCHER_PID=$!
  for signal in $MAPLE_EARLY; do maple_forward "$signal"; done
  if [ "$MAPLE_TIMER" -gt 0 ]; then # this scheduler cannot warn the script, so it warns itself
    (trap - TERM INT HUP USR1; sleep "$MAPLE_TIMER"; kill -s USR1 $$) &
    MAPLE_TIMER_PID=$!
  fi
  if [ "$MAPLE_LIMIT" -gt 0 ]; then # seconds after which it is ended
    (
      trap - TERM INT HUP USR1
      sleep "$MAPLE_LIMIT"
      kill -s TERM "$MAPLE_LAUNCHER_PID" && sleep 10 && kill -s KILL "$MAPLE_LAUNCHER_PID"
    ) >/dev/null 2>&1 &
    MAPLE_LIMIT_PID=$!
  fi
  if [ "$MAPLE_LIMIT" -eq 0 ] && declare -F maple_watch >/dev/null; then
    maple_watch &
    MAPLE_WATCH_PID=$!
  fi
  while :; do
    MAPLE_TOLD=''
    wait "$MAPLE_LAUNCHER_PID"
    MAPLE_CODE=$?
    if [ -z "$MAPLE_TOLD" ] || ! kill -0 "$MAPLE_LAUNCHER_PID" 2>/dev/null; then break; fi
  done
  if [ -n "$MAPLE_TOLD" ]; then # a signal and the end came together: ask once more for the real code
    local again
    wait "$MAPLE_LAUNCHER_PID" 2>/dev/null
    again=$?
    [ "$again" -eq 127 ] || MAPLE_CODE=$again
  fi
  trap - USR1
  [ -z "$MAPLE_TIMER_PID" ] || kill "$MAPLE_TIMER_PID" 2>/dev/null
  [ -z "$MAPLE_WATCH_PID" ] || kill "$MAPLE_WATCH_PID" 2>/dev/null
  [ -z "$MAPLE_LIMIT_PID" ] || kill "$MAPLE_LIMIT_PID" 2>/dev/null
}

# The launch once, with a test in the program's place. What it finds goes into the exit record; only "stop" ends the
# job, and only where the test found that this launch cannot train. That it says nothing is no such finding.
maple_preflight() { # maple_preflight stop|warn|only SECONDS COMMAND...
  local action=$1 timer=$MAPLE_TIMER verdict
  MAPLE_LIMIT=$2 MAPLE_TIMER=0
  shift 2
  maple_launch "$@"
  [ -z "$MAPLE_ENDED_BY" ] || maple_finish
  maple_before_launch
  if [ "$timer" -gt 0 ]; then
    MAPLE_TIMER=$((timer - $(date +%s) + MAPLE_STARTED))
    [ "$MAPLE_TIMER" -gt 0 ] || MAPLE_TIMER=1
  fi
  [ ! -e "$MAPLE_ATTEMPT_DIR/limit" ] || MAPLE_EARLY=USR1
  rm -rf "$MAPLE_ATTEMPT_DIR/failed" "$MAPLE_ATTEMPT_DIR/failure.json" # of the test, not of the training
  find "$MAPLE_ATTEMPT_DIR/preflight" -name '*.json' -exec cat {} + 2>/dev/null | maple_put "$MAPLE_ATTEMPT_DIR/ranks.jsonl"
  rm -rf "$MAPLE_ATTEMPT_DIR/preflight"
  if [ ! -s "$MAPLE_ATTEMPT_DIR/verdict.json" ]; then
    maple_say "the preflight ended with code $MAPLE_CODE and told nothing"
    printf '{"verdict":"none","findings":[{"class":"PREFLIGHT","severity":"note","message":"%s"}]}\n' \
      "the preflight ended with code $MAPLE_CODE and told nothing" | maple_put "$MAPLE_ATTEMPT_DIR/verdict.json"
  fi
  verdict=$(sed -n 's/^{"verdict": *"\([a-z]*\)".*/\1/p' "$MAPLE_ATTEMPT_DIR/verdict.json")
  case $action-$verdict in
    stop-stop) maple_stop 76 preflight "the preflight found that this launch cannot train" ;;
    only-pass | only-warn) maple_stop 0 'done' "the preflight has passed" ;;
    only-*) maple_stop 76 preflight "the preflight has not passed" ;;
  esac
}

maple_finish() {
  local reason=failed
  if [ -n "$MAPLE_ENDED_BY" ]; then
    MAPLE_CODE=143 reason=terminated
  elif [ -e "$MAPLE_ATTEMPT_DIR/stop" ]; then
    MAPLE_CODE=77 reason=stalled
  elif [ "$MAPLE_CODE" -eq 0 ]; then
    reason='done'
  elif [ -s "$MAPLE_ATTEMPT_DIR/failure.json" ]; then
    # A launcher that ends the other processes reports their end (15:0); the first failure is the cause.
    local code
    code=$(sed -n 's/.*"code":\([0-9][0-9]*\).*/\1/p' "$MAPLE_ATTEMPT_DIR/failure.json")
    MAPLE_CODE=${code:-$MAPLE_CODE}
  fi
  trap - EXIT
  maple_record "$MAPLE_CODE" "$reason"
  exit "$MAPLE_CODE"
}
