# shellcheck shell=bash
# The launcher of a machine without a scheduler: COUNT processes here; when one fails the others are ended.
maple_local() { # maple_local COUNT COMMAND...
  local count=$1 index pid status code=0 pids=() left told=''
  shift
  trap 'kill -s TERM "${pids[@]}" 2>/dev/null' TERM INT
  trap 'kill -s USR1 "${pids[@]}" 2>/dev/null' USR1
  for ((index = 0; index < count; index++)); do
    MAPLE_LOCAL_INDEX=$index "$@" &
    pids+=($!)
  done
  while [ "${#pids[@]}" -gt 0 ]; do
    # Its own code says too little: 127 is "no such process" as well as a process whose command was not found.
    wait -n "${pids[@]}" 2>/dev/null
    left=()
    for pid in "${pids[@]}"; do
      if kill -0 "$pid" 2>/dev/null; then
        left+=("$pid")
        continue
      fi
      wait "$pid" 2>/dev/null
      status=$?
      [ "$code" -ne 0 ] || code=$status
    done
    pids=("${left[@]}")
    if [ "$code" -ne 0 ] && [ -z "$told" ] && [ "${#pids[@]}" -gt 0 ]; then
      told=1
      kill -s TERM "${pids[@]}" 2>/dev/null
    fi
  done
  return "$code"
}
