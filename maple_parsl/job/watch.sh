# shellcheck shell=bash
# The watchdog, in the batch shell: when neither the log, nor metrics.jsonl, nor a file heartbeat* of the attempt has
# changed for MAPLE_WATCHDOG seconds, every rank is asked for a sample of itself and the slowest is named.
maple_signs() { stat -Lc '%s %Y' "/proc/$BASHPID/fd/2" "$MAPLE_RUN_DIR/metrics.jsonl" "$MAPLE_ATTEMPT_DIR"/heartbeat* 2>/dev/null; }

maple_watch() {
  trap - TERM INT HUP USR1
  local before='' now since told='' step=$((MAPLE_WATCHDOG / 4))
  [ "$step" -ge 1 ] || step=1
  [ "$step" -le 30 ] || step=30
  since=$(date +%s)
  while sleep "$step"; do
    now=$(maple_signs)
    if [ "$now" != "$before" ]; then
      before=$now since=$(date +%s)
      [ -z "$told" ] || { told='' && rm -rf "$MAPLE_ATTEMPT_DIR/stalled" "$MAPLE_ATTEMPT_DIR/stalled.json"; }
    elif [ -z "$told" ] && [ "$(($(date +%s) - since))" -ge "$MAPLE_WATCHDOG" ]; then
      told=1
      maple_stalled "$since"
      before=$(maple_signs)
    fi
  done
}

maple_stalled() { # maple_stalled SINCE: collect the samples, name the slowest rank, stop if asked
  local folder=$MAPLE_ATTEMPT_DIR/stalled tries=0 count=0 kind cpu rank host state waits advice=''
  mkdir -p "$folder"
  while [ "$tries" -lt 25 ] && [ "$count" -lt "$MAPLE_WORLD" ]; do
    sleep 1
    tries=$((tries + 1)) count=$(find "$folder" -name '*.sample' | wc -l)
  done
  read -r kind cpu rank host state waits < <(cat "$folder"/*.sample 2>/dev/null | sort -n -k1,1 -k2,2 | head -n 1)
  [ -z "${SLURM_JOB_ID-}" ] || [ -z "$host" ] || advice="to leave that node out: --directive=--exclude=$host"
  printf '{"since":%d,"seconds":%d,"samples":%d,"ranks":%d,"rank":%s,"host":"%s","state":"%s","waits":"%s","cpu":%s,"advice":"%s"}\n' \
    "$1" "$(($(date +%s) - $1))" "$count" "$MAPLE_WORLD" "${rank:-null}" "$host" "$state" "$waits" "${cpu:-null}" "$advice" |
    maple_put "$MAPLE_ATTEMPT_DIR/stalled.json"
  maple_say "no progress for $(($(date +%s) - $1)) s; slowest: rank ${rank:-?} on ${host:-?}, state ${state:-unknown} (kind ${kind:-?})"
  if [ "$MAPLE_WATCH_STOP" = 1 ]; then
    : >"$MAPLE_ATTEMPT_DIR/stop"
    sleep 5
    kill -s TERM "$MAPLE_LAUNCHER_PID" 2>/dev/null
    sleep 45
    kill -s KILL "$MAPLE_LAUNCHER_PID" 2>/dev/null
  fi
}
