# shellcheck shell=bash
# The end of each rank is kept with its time, in ends/NODE of the job's folder: srun (22.05.8) tells ends node by node, not in
# their order, and not that a rank was done. A rank that Slurm kills because of another one has no line. $1: the exit code.
hpclaunch_rank_end() {
  local host now=${EPOCHREALTIME-}  # bash from 5.0 on, in the language of the user
  [ "$now" ] || now=$(date +%s.%N)
  read -r host < /proc/sys/kernel/hostname
  printf '%s hpclaunch: task rank %s on host %s failed (Exit %s)\n' "${now/,/.}" "$RANK" "$host" "$1" \
    2> /dev/null >> "$HPCLAUNCH_JOB_FOLDER/ends/$host" || :
}
