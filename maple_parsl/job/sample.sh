#!/bin/sh
# Beside each rank, where a watchdog was asked for: when the batch shell finds no progress, says what the rank does.
#   sample.sh PID   of the process that task.sh has started
# A line RANK.sample for the comparison (0 stopped, 1 ended, 2 waits for a device or disk, 3 else; ticks of CPU in
# 2 s; rank; host; state; kernel function), and RANK.stack for people.
set -u
child=$1
rank=${RANK:-${NODE_RANK:-0}}
told=

tree() { # the process and everything it started
  echo "$1"
  below=$(cat "/proc/$1/task/$1/children" 2>/dev/null)
  for below in $below; do tree "$below"; done
}

ticks() { # CPU of the whole tree so far
  for pid in $1; do sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null; done | awk '{ sum += $12 + $13 } END { print sum + 0 }'
}

sample() {
  folder=$MAPLE_ATTEMPT_DIR/stalled
  pids=$(tree "$child")
  before=$(ticks "$pids")
  sleep 2
  cpu=$(($(ticks "$pids") - before))
  states=$(for pid in $pids; do sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null; done | cut -c1 | tr -d '\n')
  case $states in
    *[Tt]*) kind=0 state=T ;;
    '' | *Z*) kind=1 state=Z ;;
    *D*) kind=2 state=D ;;
    *) kind=3 state=$(echo "$states" | cut -c1) ;;
  esac
  for pid in $pids; do
    echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    grep -E '^(State|Threads|SigPnd|SigCgt)' "/proc/$pid/status"
    echo "waits in: $(cat "/proc/$pid/wchan")"
    ! command -v py-spy >/dev/null || timeout 10 py-spy dump --nonblocking --pid "$pid"
    while read -r key mask _; do # a program that registered faulthandler for USR2 prints its stack to the log
      [ "$key" = SigCgt: ] || continue
      case $mask in *[89abcdefABCDEF]??) kill -s USR2 "$pid" ;; esac
    done <"/proc/$pid/status"
  done >"$folder/$rank.stack" 2>/dev/null
  waits=$(cat "/proc/$child/wchan" 2>/dev/null)
  echo "$kind $cpu $rank $(uname -n) $state ${waits:-?}" >"$folder/$rank.tmp" && mv "$folder/$rank.tmp" "$folder/$rank.sample"
}

while kill -0 "$child" 2>/dev/null; do
  if [ -e "$MAPLE_ATTEMPT_DIR/stop" ]; then
    for pid in $(tree "$child"); do kill -s CONT "$pid" && kill -s TERM "$pid"; done
    sleep 10
    for pid in $(tree "$child"); do kill -s KILL "$pid"; done
  elif [ ! -d "$MAPLE_ATTEMPT_DIR/stalled" ]; then
    told=
  elif [ -z "$told" ]; then
    told=1
    sample
  fi
  sleep 5
done
