# shellcheck shell=bash
# Look again at a rank's binding while its program runs: libraries bind threads, and wrappers rebind programs.
#
# This shell sleeps between its looks, is not a child of the program, holds none of its files, and ends with it. What is
# new is a line in the same file as the rank's report.

# CPUs of thread $1 into mask and its name into name; nothing where it has ended. ``at``: the line where the CPUs stood
# in the last status, which is the same in most of them.
hpclaunch_look_at() {
  local -a lines=()
  mask=''
  mapfile -t lines < "$1/status"
  if [[ ${lines[at]:-} != Cpus_allowed_list:* ]]; then
    for ((at = ${#lines[@]} - 1; at > 0; at--)); do [[ ${lines[at]} != Cpus_allowed_list:* ]] || break; done
  fi
  [ "$at" -gt 0 ] || return 0
  mask=${lines[at]#Cpus_allowed_list:?} name=${lines[0]#*:?}
}

# Look at all threads of this process (.) and of its children, and add to ``news`` what was not seen before.
hpclaunch_look_at_all() {
  local kids kid mask name n
  local -a tasks=(task/*)
  for ((n = 0; n < ${#tasks[@]}; n++)); do
    kids=''
    hpclaunch_look_at "${tasks[n]}"
    read -r kids < "${tasks[n]}/children" || :
    for kid in $kids; do tasks+=("/proc/$kid/task/"*); done
    [ "$mask" ] && [ "$mask" != "$1" ] && [ -z "${seen[$mask]:-}" ] || continue
    seen[$mask]=1 news+=${news:+;}$mask@${name//[^a-zA-Z0-9_.:-]/_}
  done
}

# $1: the process; $2: its CPUs at the start; $3: the file.
hpclaunch_watch() {
  local fd never at=0 news='' written=- next=2 step=2
  local -A seen=()
  cd "${HPCLAUNCH_SYSROOT:-}/proc/$1" || return  # stays this process, also when its number is used again
  trap '' INT USR1 USR2
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || exec {fd}>&-
  done
  exec {never}<> <(:)  # a pipe in which nothing arrives: waiting for it needs no process
  SECONDS=0
  while [ -e task ]; do
    read -rt $((step > 60 ? 5 : 1)) -u "$never" || :
    [ "$SECONDS" -ge "$next" ] || continue
    hpclaunch_look_at_all "$2"
    if [ "$news" != "$written" ]; then
      printf 'hpclaunch-later rank=%s found=%s\n' "$RANK" "$news" >> "$3"
      written=$news
    fi
    step=$((step < 150 ? 2 * step : 300)) next=$((SECONDS + step))
  done
}
