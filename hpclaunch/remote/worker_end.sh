# shellcheck shell=bash
# A worker that failed says so as it ends: deepspeed (0.19) does not say which one it was, and srun may end torchrun (2.13)
# before it does. $1: the exit code; 143: the launcher has ended it. HOSTNAME may be another node: Slurm (22.05.8) sets it for
# the script, hands it on to all nodes, and bash (5.2) keeps it.
hpclaunch_worker_end() {
  local host
  [ "$1" != 0 ] && [ "$1" != 143 ] || return 0
  read -r host < /proc/sys/kernel/hostname
  echo "hpclaunch: worker rank $RANK on host $host failed (Exit $1)" >&2
}
