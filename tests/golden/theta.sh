#!/bin/bash
#COBALT --jobname mnist
#COBALT -A MyProject
#COBALT -q debug-cache-quad
#COBALT -n 1
#COBALT -t 00:30:00
#COBALT --attrs mcdram=cache:numa=quad:filesystems=home,theta-fs0
# Cobalt reads the lines at the top only, up to the first blank one. What each of them is for:
#   --jobname mnist: the name in qstat
#   -A MyProject: the project that pays
#   -q debug-cache-quad: the first queue that fits: up to 8 nodes, 01:00:00
#   -n 1: nodes
#   -t 00:30:00: walltime limit
#   --attrs mcdram=cache:numa=quad:filesystems=home,theta-fs0: the memory mode (MCDRAM as a cache, one NUMA node), and the file systems that the job needs

# Written by hpclaunch 0.1.0 for theta: Theta at ALCF, Argonne (Cray XC40, Xeon Phi 7230 of 64 cores, no
# GPUs), switched off, facts read 2026-11-22.
# 1 node x 1 rank = 1 rank.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-63  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$COBALT_JOBID"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$COBALT_JOBID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
export HPCLAUNCH_TASKS=1  # ranks
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# ranks per node: aprun tells a rank its number in the job only
export HPCLAUNCH_RANKS_PER_NODE=$((HPCLAUNCH_TASKS / COBALT_JOBSIZE))
# rendezvous: the job's first node
read -r MASTER_ADDR < <(if [ -r "${COBALT_NODEFILE-}" ]; then cat "$COBALT_NODEFILE"; else awk -v list="$COBALT_PARTNAME" 'BEGIN { n = split(list, part, ","); for (i = 1; i <= n; i++) { m = split(part[i], end, "-"); for (k = end[1]; k <= end[m]; k++) printf "nid%05d\n", k } }'; fi)
export MASTER_ADDR MASTER_PORT=$((10000 + COBALT_JOBID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=64  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank
export RANK="${ALPS_APP_PE:?aprun gave no rank}" LOCAL_RANK="$((ALPS_APP_PE % HPCLAUNCH_RANKS_PER_NODE))"
export WORLD_SIZE=1  # and the sizes, for torch.distributed and others
cpus=(0-63)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

aprun -n 1 -N 1 -d 64 -j 1 -cc none \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://github.com/argonne-lcf/user-guides/blob/main/docs/theta/queueing-and-running-jobs/example-job-scripts.md, read 2026-11-22
