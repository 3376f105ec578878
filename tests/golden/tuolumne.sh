#!/bin/bash
#flux: --job-name=mnist  # the name in flux jobs
#flux: --bank=guests  # the bank that pays
#flux: --queue=pbatch  # the first queue that fits: up to any number of nodes, any time
#flux: --nodes=1  # nodes
#flux: --exclusive  # whole nodes, one slot on each
#flux: --gpus-per-slot=4  # GPUs of each slot
#flux: --time-limit=1800s  # walltime limit
#flux: --output=hpclaunch-{{id}}.out  # stdout and stderr of the job

# Written by hpclaunch 0.1.0 for tuolumne: Tuolumne at LLNL, USA (HPE Cray EX, 4 MI300A per node, Flux),
# sibling of El Capitan, facts read 2026-11-24.
# 1 node x 4 ranks = 4 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 1-7,9-15,17-23  GPU 0  NUMA node 0
#   rank 1: CPUs 25-31,33-39,41-47  GPU 1  NUMA node 1
#   rank 2: CPUs 49-55,57-63,65-71  GPU 2  NUMA node 2
#   rank 3: CPUs 73-79,81-87,89-95  GPU 3  NUMA node 3

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
module load rocm/6.4.1  # ROCm with its compilers [1]
module load cray-python/3.11.7  # a Python for virtual environments [1]
export NCCL_SOCKET_IFNAME=hsi0  # RCCL finds its peers over Slingshot [2]
export NCCL_NET_GDR_LEVEL=3  # HPE's advice, against hangs [2]
export NCCL_MIN_NCHANNELS=24  # AMD's advice, for faster collectives [2]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [2]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with RCCL [2]
export FI_CXI_DISABLE_HOST_REGISTER=1  # LLNL's tuning for Slingshot [2]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [2]
export FI_CXI_DEFAULT_TX_SIZE=1024  # LLNL's tuning for Slingshot [2]
export FI_CXI_RX_MATCH_MODE=hybrid  # message matching continues in software when the NIC's lists are full [2]
export MIOPEN_USER_DB_PATH="${TMPDIR:-/tmp}/MIOpen_user_db"  # MIOpen's database on the node [2]
export MIOPEN_CUSTOM_CACHE_DIR="${TMPDIR:-/tmp}/MIOpen_custom_cache"  # and its kernel cache [2]
MASTER_ADDR=$(hostname)  # rendezvous: the job's first node
# this job's port (10000-19999)
export MASTER_ADDR MASTER_PORT=$((10000 + ($(flux job id --to=dec "$FLUX_ENCLOSING_ID") >> 24) % 10000))
export OMP_NUM_THREADS=21  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank
export RANK="${FLUX_TASK_RANK:?flux gave no rank}" LOCAL_RANK="${FLUX_TASK_LOCAL_ID:?flux gave no rank}"
export WORLD_SIZE=4  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3)  # GPUs of each local rank, nearest to its cores
export ROCR_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
# CPUs planned for each local rank
cpus=('1-7,9-15,17-23' '25-31,33-39,41-47' '49-55,57-63,65-71' '73-79,81-87,89-95')
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

flux run --nodes=1 --tasks-per-node=4 --exclusive -o exit-timeout=none -o exit-on-error -o cpu-affinity=off \
  -o gpu-affinity=off \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://github.com/BLAST-WarpX/warpx, read 2026-11-24, community
# [2] https://github.com/LBANN/HPC-launcher, read 2026-11-24
