#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=project_465000001  # the project that pays
#SBATCH --partition=standard-g  # the first partition that fits: up to 1024 nodes, 2-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=1  # torchrun, which starts the ranks on each node
#SBATCH --gpus-per-node=8  # GPUs of each node, visible to its ranks together
#SBATCH --mem=480G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for lumi-g: LUMI-G at CSC, Finland (HPE Cray EX, 8 MI250X GCDs per node), facts
# read 2026-11-20 to 2026-11-23.
# 2 nodes x 8 ranks = 16 ranks, started on each node by torchrun.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 49-55  GPU 0  NUMA node 3
#   rank 1: CPUs 57-63  GPU 1  NUMA node 3
#   rank 2: CPUs 17-23  GPU 2  NUMA node 1
#   rank 3: CPUs 25-31  GPU 3  NUMA node 1
#   rank 4: CPUs 1-7  GPU 4  NUMA node 0
#   rank 5: CPUs 9-15  GPU 5  NUMA node 0
#   rank 6: CPUs 33-39  GPU 6  NUMA node 2
#   rank 7: CPUs 41-47  GPU 7  NUMA node 2

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module use /appl/local/laifs/modules  # what the site's containers need
module load lumi-aif-singularity-bindings  # what the site's containers need
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # RCCL must use Slingshot, not the management network [1]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with RCCL [2]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with the GPU, which can deadlock [3]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [3]
export HSA_FORCE_FINE_GRAIN_PCIE=1  # lets RCCL use the direct path between GPUs and NICs [3]
# MIOpen's database in node-local memory - many ranks that lock one file on Lustre hang [4]
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-$SLURM_JOB_ID"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-$SLURM_JOB_ID"  # and its kernel cache [4]
export TORCH_HOME="/scratch/$SLURM_JOB_ACCOUNT/$USER/torch_home"  # downloads, as home has 20 GB only [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=7  # threads for each rank: the cores it is bound to
export PYTHON_EXEC="$HPCLAUNCH_JOB_FOLDER/worker"  # workers start by this file, which binds them
# torchrun's --nnodes and --nproc-per-node, where the command has none
export PET_NNODES=2 PET_NPROC_PER_NODE=8
# and its rendezvous: on the job's first node
export PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT="$MASTER_ADDR:$MASTER_PORT" PET_RDZV_ID="$HPCLAUNCH_JOB_ID"
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each worker that torchrun starts is a shell with these lines: the file "worker".
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
: "${RANK:?the worker has no rank}" "${LOCAL_RANK:?the worker has no rank}"  # its launcher's
IFS= read -r -d "" python < "/proc/$PPID/cmdline"; set -- "${python:-python}" "$@"  # the launcher's Python
unset PYTHON_EXEC "${!PET_@}"  # not for a torchrun that the program may start
export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7  # all GPUs: number LOCAL_RANK is the rank's own
cpus=(49-55 57-63 17-23 25-31 1-7 9-15 33-39 41-47)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK
install -m 700 /dev/stdin "$HPCLAUNCH_JOB_FOLDER/worker" <<< $'#!/bin/bash\n'"$rank_start$rank_end"

# On each node a shell with these lines starts torchrun.
IFS= read -r -d '' node_start <<'HPCLAUNCH_NODE' || :
exec -- "$@"
HPCLAUNCH_NODE

srun --kill-on-bad-exit=1 --cpu-bind=none \
  bash -c "$node_start" node \
  singularity exec /appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif torchrun train.py --lr 'it'"'"'s'

# Sources:
# [1] https://github.com/Lumi-supercomputer/LUMI-AI-Guide, read 2026-11-23
# [2] https://github.com/Lumi-supercomputer/LUMI-AI-Guide/pull/118, read 2026-11-23
# [3] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
# [4] https://docs.lumi-supercomputer.eu/runjobs/scheduled-jobs/lumig-job/, read 2026-11-20
