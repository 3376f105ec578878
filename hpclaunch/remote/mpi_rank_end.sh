# shellcheck shell=bash
# A rank that failed is named and ends the job, under hydra, mpiexec of MPICH (tried: 5.0.2): it names no rank, and waits for the
# other ranks where they speak no MPI. Open MPI does both itself; there the shell becomes the program.
#
# hydra sets HYDI_CONTROL_FD, and takes "abort" of PMI 1 by PMI_FD from each rank (HYD_pmiserv_abort in src/pm/hydra of MPICH), which
# it tells by "cmd=" whatever PMI the program speaks (src/pm/hydra/proxy/pmip_cb.c): it kills the rest and exits with that code.
# $1: the program's exit code; 143: the job was ended from outside.
[ "${HYDI_CONTROL_FD-}" ] && [ -z "${OMPI_COMM_WORLD_RANK-}" ] || hpclaunch_rank_over=
hpclaunch_mpi_rank_end() {
  local host
  [ "$1" != 0 ] && [ "$1" != 143 ] || return 0
  read -r host < /proc/sys/kernel/hostname
  echo "hpclaunch: task rank $RANK on host $host failed (Exit $1)" >&2
  sleep 1  # hydra drops what it has not passed on
  trap '' PIPE  # hydra has closed it where the program has called MPI_Finalize
  { printf 'cmd=abort exitcode=%s\n' "$1" >&"$PMI_FD"; } 2> /dev/null
}
