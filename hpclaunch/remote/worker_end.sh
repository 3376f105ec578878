# shellcheck shell=bash
# A worker that failed is named: deepspeed (0.3.14 to 0.19.8) says with which code one ended, not which. $1: that code.
hpclaunch_worker_end() {
  [ "$1" = 0 ] || [ "$1" = 143 ] || echo "hpclaunch: worker rank $RANK on host $HOSTNAME failed (Exit $1)" >&2
}
