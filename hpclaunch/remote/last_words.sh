# shellcheck shell=bash
# The last words of each rank: its stderr and stdout go on to the launcher unchanged, and their ends stay in FOLDER/stderr/RANK and
# FOLDER/stdout/RANK too.
#
#   hpclaunch_keep_last_words FOLDER RANK    in the shell of a rank, whose program then has these streams
#
# Launchers lose lines when they end a job: mpiexec of Open MPI 5.0.11 (PRRTE) at an abort, srun of Slurm 22.05.8 when
# one rank fails, the shell of Flux 0.88 with exit-on-error. And most logs do not tell which rank wrote a line. A file holds
# at least the last 64 KiB, with those before them in RANK.before, together at most 700 KiB. A rank that writes nothing has none.
# stdout is kept where FOLDER/stdout is there, and it is no terminal: Open MPI gives ranks one, for which programs write line by line.
# HPCLAUNCH_LAST_WORDS=off in the job's environment: no copy.
#
# Two processes a stream: tee, and a shell that collects what tee reads and writes it at the end and at most once per second, or
# less often for stdout of many ranks, so that a file system does not see each line. They are not children of the program, have a
# process group of their own, heed no signal that a launcher sends to a rank, and end when the last process that has the stream
# ends. Needed: bash from 4.1 on and coreutils. Tried with bash 5.2.

# $1: the file; $2: seconds between two writes.
hpclaunch_keep_words() {
  local file=$1 first piece report size=0
  while IFS= read -r -N 1 first; do
    # Waits until the time is over, there are 4096 bytes, or the last writer has ended. NUL bytes are left out.
    IFS= read -r -d '' -N 4095 -t "$2" piece
    if [ "$size" -ge 65536 ]; then
      mv -f -- "$file" "$file.before"
      size=0
    fi
    printf '%s%s' "$first" "$piece" >> "$file"
    size=$((size + 1 + ${#piece}))
    [ "${#piece}" -eq 4095 ] || continue
    # Much at once: dd copies what is there, so that the program need not wait for this shell, and keeps nothing.
    report=$(exec dd bs=16384 count=16 2>&1 >> "$file")
    report=${report##*$'\n'} report=${report%% *}
    case $report in '' | *[!0-9]*) ;; *) size=$((size + report)) ;; esac
  done
}

# Become tee. stdin: the rank's stream; stdout: the launcher's end of it; $1, $2: as above.
hpclaunch_copy_words() {
  local fd
  LC_ALL=C  # a character is a byte
  for fd in /proc/self/fd/*; do  # those of the rank, such as its connection to the launcher
    fd=${fd##*/}
    [ "$fd" -le 2 ] || exec {fd}>&-
  done
  export HPCLAUNCH_HELPER=1  # stacks and verify take it for no program of the rank
  exec tee >(hpclaunch_keep_words "$@" > /dev/null 2>&1) 2> /dev/null
}

# $1: the folder; $2: the rank.
hpclaunch_keep_last_words() {
  [ "${HPCLAUNCH_LAST_WORDS:-}" != off ] && [ -d "$1/stderr" ] || return 0
  # set -m: a process group of its own. The shell in between ends at once. All ranks write stdout 64 times per second at most.
  if [ -d "$1/stdout" ] && [ ! -t 1 ]; then
    # shellcheck disable=SC2154  # plan.sh
    exec > >(trap '' HUP INT QUIT TERM PIPE USR1 USR2; set -m; hpclaunch_copy_words "$1/stdout/$2" $((1 + hpclaunch_tasks / 64)) <&0 2> /dev/null &)
    wait "$!"
  fi
  exec 2> >(trap '' HUP INT QUIT TERM PIPE USR1 USR2; set -m; hpclaunch_copy_words "$1/stderr/$2" 1 <&0 >&2 &)
  # shellcheck disable=SC2034  # rank.sh waits for it
  hpclaunch_copier=$!
}
