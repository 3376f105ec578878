#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=project_465000001  # the project that pays
#SBATCH --partition=standard-g  # the first partition that fits: up to 1024 nodes, 2-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=8  # ranks on each node
#SBATCH --gpus-per-node=8  # GPUs of each node, visible to its ranks together
#SBATCH --mem=480G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for lumi-g: LUMI-G at CSC, Finland (HPE Cray EX, 8 MI250X GCDs per node), facts
# read 2026-11-20 to 2026-11-23.
# 2 nodes x 8 ranks = 16 ranks.
# Framework: horovod; named in the request.
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

module load LUMI/24.03 partition/G  # the software stack for the GPU nodes [1]
module load cray-python/3.11.7  # a Python with numpy and mpi4py for Cray MPICH [2]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # RCCL must use Slingshot, not the management network [3]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with RCCL [4]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with the GPU, which can deadlock [5]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [5]
export HSA_FORCE_FINE_GRAIN_PCIE=1  # lets RCCL use the direct path between GPUs and NICs [5]
# MIOpen's database in node-local memory - many ranks that lock one file on Lustre hang [6]
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-$SLURM_JOB_ID"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-$SLURM_JOB_ID"  # and its kernel cache [6]
export TORCH_HOME="/scratch/$SLURM_JOB_ACCOUNT/$USER/torch_home"  # downloads, as home has 20 GB only [3]
# the launcher starts the ranks, so they find each other by MPI (Gloo needs horovodrun)
export HOROVOD_CONTROLLER=mpi
# and tensors in host memory go by MPI, also where Gloo is the build's default
export HOROVOD_CPU_OPERATIONS=mpi
# Horovod's rank 0 writes the timeline of all ranks here (Horovod docs, timeline)
export HOROVOD_TIMELINE="$HPCLAUNCH_JOB_FOLDER"/timeline.json
export HOROVOD_TIMELINE_MARK_CYCLES=1  # with Horovod's cycles marked in it
export OMP_NUM_THREADS=7  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # this shell's own
export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7  # all GPUs: number LOCAL_RANK is the rank's own
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 \
  bash -c "$rank_start$rank_end" rank \
  python train.py --deepspeed_config 'ds config.json'

# Sources:
# [1] https://docs.lumi-supercomputer.eu/software/installing/easybuild/, read 2026-11-20
# [2] https://docs.lumi-supercomputer.eu/software/, read 2026-11-23, community
# [3] https://github.com/Lumi-supercomputer/LUMI-AI-Guide, read 2026-11-23
# [4] https://github.com/Lumi-supercomputer/LUMI-AI-Guide/pull/118, read 2026-11-23
# [5] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
# [6] https://docs.lumi-supercomputer.eu/runjobs/scheduled-jobs/lumig-job/, read 2026-11-20
