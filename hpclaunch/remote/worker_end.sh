# shellcheck shell=bash
# A worker that failed says so as it ends: deepspeed (0.19) does not say which one it was, and srun may end torchrun (2.13)
# before it does. $1: the exit code; 143: the launcher has ended it.
hpclaunch_worker_end() {
  [ "$1" = 0 ] || [ "$1" = 143 ] || echo "hpclaunch: worker rank $RANK on host $HOSTNAME failed (Exit $1)" >&2
}
