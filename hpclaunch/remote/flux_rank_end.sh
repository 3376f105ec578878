# shellcheck shell=bash
# A rank that failed is named and waits: Flux (0.88) ends the job at once and drops what it has not passed on. It looks
# at the first rank that ends only: if that one was done, this rank ends the job. $1: the program's exit code.
hpclaunch_flux_rank_end() {
  local failed host
  [ "$1" != 0 ] && [ "$1" != 143 ] || return 0
  read -r host < /proc/sys/kernel/hostname
  failed="task rank $FLUX_TASK_RANK on host $host failed (Exit $1)"
  echo "hpclaunch: $failed" >&2
  sleep 2  # Flux passes on what was written
  ( [ -z "${PMI_FD-}" ] || exec {PMI_FD}>&-  # else Flux waits for this shell, too
    sleep 5
    flux job raise --severity=0 --type=exec "$FLUX_JOB_ID" "$failed" ) < /dev/null > /dev/null 2>&1 &
}
