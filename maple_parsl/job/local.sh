# shellcheck shell=bash
# The launcher of a machine without a scheduler: COUNT processes here; when one fails the others are ended.
maple_local() { # maple_local COUNT COMMAND...
  local count=$1 index pid code=0 pids=() told
  shift
  trap 'told=1; kill -s TERM "${pids[@]}" 2>/dev/null' TERM INT
  trap 'told=1; kill -s USR1 "${pids[@]}" 2>/dev/null' USR1
  for ((index = 0; index < count; index++)); do
    MAPLE_LOCAL_INDEX=$index "$@" &
    pids+=($!)
  done
  for ((index = 0; index < count; )); do
    told=''
    wait -n "${pids[@]}" 2>/dev/null # it complains of those already seen
    pid=$?
    [ -z "$told" ] || continue
    [ "$pid" -ne 127 ] || break
    index=$((index + 1))
    if [ "$pid" -ne 0 ] && [ "$code" -eq 0 ]; then
      code=$pid
      kill -s TERM "${pids[@]}" 2>/dev/null
    fi
  done
  return "$code"
}
