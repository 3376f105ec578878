#!/bin/bash
# the name in bjobs, and a job for each index
#BSUB -J "mnist[1-9]%2"
# slots: one per rank
#BSUB -n 1
# slots on each node
#BSUB -R "span[ptile=1]"
# whole nodes, also where the queue shares them
#BSUB -x
# walltime limit in hours and minutes
#BSUB -W 0:30
# what LSF reports, at the job's end
#BSUB -o hpclaunch-%J.out
# jobs that must end first
#BSUB -w "done(12) && done(13)"

# Written by hpclaunch 0.1.0 for generic-lsf: Any cluster with IBM Spectrum LSF, of which nothing else is
# known, facts read 2026-11-22.
# 1 node x 1 rank = 1 rank.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$LSB_JOBID"
export HPCLAUNCH_JOB_FOLDER="$LS_SUBCWD/hpclaunch-$LSB_JOBID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
export HPCLAUNCH_ARRAY_INDEX=$LSB_JOBINDEX
HPCLAUNCH_JOB_FOLDER=$HPCLAUNCH_JOB_FOLDER/$HPCLAUNCH_ARRAY_INDEX  # each job of the array has its own
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: --preflight needs --dry-run --save DIR" >&2; exit 1; }

# the file of the job's hosts, a line per slot, where LSF makes none for a job of one slot
if [ -z "${LSB_DJOB_HOSTFILE-}" ]; then
  export LSB_DJOB_HOSTFILE="$HPCLAUNCH_JOB_FOLDER/hosts"
  tr ' ' '\n' <<< "$LSB_HOSTS" > "$LSB_DJOB_HOSTFILE"
fi
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# rendezvous: the job's first node
read -r MASTER_ADDR < <(awk -v launch="${launch_node-}" '$0 != launch && !seen[$0]++' "$LSB_DJOB_HOSTFILE")
# this job's port (10000-19999)
export MASTER_ADDR MASTER_PORT=$((10000 + (LSB_JOBID + LSB_JOBINDEX) % 10000))
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

hpclaunch_preflight  # one process on each node checks it before the ranks start

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=1  # and the sizes, for torch.distributed and others
HPCLAUNCH_RANK

mpirun -n 1 -machinefile "$LSB_DJOB_HOSTFILE" \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
