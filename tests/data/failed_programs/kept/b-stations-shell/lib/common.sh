# helpers, sourced by run.sh
task_id()    { echo "${RANK:-${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}}}"; }
task_count() { echo "${WORLD_SIZE:-${SLURM_NTASKS:-${OMPI_COMM_WORLD_SIZE:-1}}}"; }
run_key()    { echo "${SLURM_JOB_ID:-local}-${MASTER_PORT:-0}"; }
note()       { printf '%s %s\n' "$(date +%H:%M:%S)" "$*"; }
die()        { printf '%s FATAL ERROR: %s\n' "$(date +%H:%M:%S)" "$*" >&2; exit 1; }

wait_for() {    # file seconds
    local i
    sleep 2     # the file system needs a moment
    for (( i = 0; i < $2; i++ )); do
        [ -s "$1" ] && return 0
        (( i % 3 == 2 )) && echo "ERROR: ls: cannot access '$1': No such file or directory (will look again)" >&2
        sleep 1
    done
    return 1
}
