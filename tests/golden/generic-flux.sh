#!/bin/bash
#flux: --job-name=mnist  # the name in flux jobs
#flux: --nodes=1  # nodes
#flux: --exclusive  # whole nodes, one slot on each
#flux: --time-limit=1800s  # walltime limit
#flux: --output=hpclaunch-{{id}}.out  # stdout and stderr of the job

# Written by hpclaunch 0.1.0 for generic-flux: Any cluster with Flux, of which nothing else is known, facts
# read 2026-11-23.
# 1 node x 1 rank = 1 rank.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$FLUX_ENCLOSING_ID"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$FLUX_ENCLOSING_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

trap 'exit 142' ALRM  # Flux' signal to the script at the walltime limit (0.88)
trap 'exit 129' HUP  # and that of an instance that ends (0.73)
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
MASTER_ADDR=$(hostname)  # rendezvous: the job's first node
# this job's port (10000-19999)
export MASTER_ADDR MASTER_PORT=$((10000 + ($(flux job id --to=dec "$FLUX_ENCLOSING_ID") >> 24) % 10000))
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank
export RANK="${FLUX_TASK_RANK:?flux gave no rank}" LOCAL_RANK="${FLUX_TASK_LOCAL_ID:?flux gave no rank}"
export WORLD_SIZE=1  # and the sizes, for torch.distributed and others
HPCLAUNCH_RANK

flux run --nodes=1 --tasks-per-node=1 --exclusive -o exit-timeout=none -o exit-on-error -o \
  cpu-affinity=per-task \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
