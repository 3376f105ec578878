# shellcheck shell=bash
# Ends a job whose ranks would each run alone: an MPI that is started by a plugin which it does not speak gives no error.
#
# Slurm's plugins give a rank its number by PMIX_RANK (pmix), PMI_RANK (pmi2) and PALS_RANKID (cray_shasta): all seen in
# 22.05. libopen-pal.so.80 is Open MPI 5, which speaks PMIx only (docs.open-mpi.org, "Launching with Slurm"). A program
# that loads its MPI later, as Python does, cannot be recognised so early.
hpclaunch_srun_guard() {
  [ "$SLURM_PROCID" = 0 ] && [ -z "${PMIX_RANK-}" ] || return 0
  case ${PMI_RANK-}${PALS_RANKID-},$(ldd "$(command -v -- "$1")" 2> /dev/null) in
    ,*libmpi* | *libopen-pal.so.80*)
      echo "each rank would run alone, as 'rank 0 of 1': the MPI of $1 does not speak srun's plugin;" \
        "--mpi pmix is for Open MPI, pmi2 for MPICH (srun --mpi=list), none starts it so on purpose" |
        tee "$HPCLAUNCH_JOB_FOLDER/reason" >&2
      exit 1 ;;
  esac
}
