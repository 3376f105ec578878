# shellcheck shell=bash
# A folder of this job's own for the session files of mpiexec. A job's script sources this file; the shell is bash.
#
# Open MPI 5's mpiexec keeps them in ompi.PID below TMPDIR, or /tmp. One that is killed leaves that folder, and a later
# mpiexec with the same process number ends at once with 213, "The PMIx server's listener thread failed to start" (tried
# with 5.0.11). In a new folder there is none. Open MPI 4 (tried: 4.1.4) leaves ompi.HOST.UID/pid.PID, which later ones
# overwrite without harm; it gets the same folder, so that nothing stays. MPICH's hydra (tried: 5.0.2) keeps no such files.
#
# Sets hpclaunch_session, the folder, which the script removes when it ends. A job that could not (its shell was
# killed) leaves the folder; the next job of the same user removes it.

# The name tells the shell: its process number, and the machine's boot and process namespace that the number is of.
hpclaunch_new_session() {
  local base=${TMPDIR:-/tmp} where old process
  [ "${#base}" -le 40 ] || base=/tmp  # with a longer one the path of a socket passes 107 bytes (man 7 unix)
  where=$(cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/pid)
  where=$(cksum <<< "$where")
  where=hpclaunch-mpi.${where%% *}
  hpclaunch_session=${HPCLAUNCH_MPI_SESSION:-}
  case $hpclaunch_session in
    */"$where.$$".*) [ ! -d "$hpclaunch_session" ] || return 0 ;;  # this job begins again in the same process
  esac
  for old in "$base/$where".*; do
    process=${old##*/"$where".}
    process=${process%%.*}
    [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] && [ ! -e "/proc/$process" ] || continue
    # Its ranks may have outlived the shell.
    grep -qsF -e "${old##*/}" /proc/[0-9]*/environ || rm -rf -- "$old" || :
  done
  hpclaunch_session=$(mktemp -d "$base/$where.$$.XXXXXX" || mktemp -d "/tmp/$where.$$.XXXXXX") || {
    hpclaunch_session=
    return 0  # mpiexec says itself that it finds no room
  }
  export HPCLAUNCH_MPI_SESSION=$hpclaunch_session
  export PRTE_MCA_prte_tmpdir_base=$hpclaunch_session OMPI_MCA_orte_tmpdir_base=$hpclaunch_session
}
hpclaunch_new_session
