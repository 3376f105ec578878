# Jobs of the machine itself, for bash: the first word names one of the functions below, the rest are its own.

# Sets f to the fields of /proc/$1/stat from the third on; the second, the program's name, may hold anything.
set -f
fields() {
  local stat=
  { IFS= read -r -d '' stat < "/proc/$1/stat"; } 2>/dev/null
  f=(${stat##*) })
  [ ${#f[@]} -gt 19 ]
}

# The shell prints its id, then becomes the script; its environment marks every process that it will start.
submit_job() {
  exec 3>&1 > "${1%/*}/out.log" 2>&1 < /dev/null || exit 1
  fields $$ || exit 1
  export HPCLAUNCH_LOCAL_JOB="$$:${f[19]}"
  printf '%s\n' "$HPCLAUNCH_LOCAL_JOB" >&3
  exec bash "$1" 3>&-
}

# An MPI puts its ranks into their own process groups, a program may make its own session, and another may
# clear its environment: so the job's processes are those of its session and those that carry its mark.
cancel_job() {
  id=$1 grace=$2 leader=${1%%:*} ours= shown=
  fields "$leader" && [ "${f[19]}" = "${id##*:}" ] && ours=1
  members() {
    local stats marked p
    pids=()
    set +f
    stats=(/proc/[0-9]*)
    marked=$(grep -lszxF -e "HPCLAUNCH_LOCAL_JOB=$id" /proc/[0-9]*/environ | tr -cs 0-9 ' ')
    set -f
    # No process gets the number of a session while another one is in it.
    for p in $marked; do fields "$p" && [[ ${f[3]} == "$leader" ]] && ours=1; done
    for p in "${stats[@]#/proc/}"; do
      fields "$p" || continue
      [[ ${f[0]} == [ZXx] || $p == $$ ]] && continue
      if [[ ( $ours && ${f[3]} == "$leader" ) || " $marked " == *" $p "* ]]; then pids+=("$p"); fi
    done
    [ ${#pids[@]} -gt 0 ]
  }
  # Whether one of those still runs: to look through all of the machine's processes takes far longer.
  found() {
    local p
    for p in "${pids[@]}"; do
      fields "$p" && [[ ${f[0]} != [ZXx] ]] && return
    done
    return 1
  }
  pids=()
  for ((end = SECONDS + grace; SECONDS < end; )); do
    if ! found; then # at first, and of what ends the last may have started others
      members || exit 0
      [ "$shown" ] || echo "${pids[*]}"
      shown=1
      kill -TERM "${pids[@]}" 2>/dev/null
    fi
    sleep 0.05
  done
  for ((i = 0; i < 100; i++)); do
    members || exit 0
    kill -KILL "${pids[@]}" 2>/dev/null
    sleep 0.05
  done
  members || exit 0
  echo "processes that cannot be killed: ${pids[*]}" >&2
  exit 1
}

"$@"
