#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=nn1234k  # the project that pays
#SBATCH --partition=accel  # the first partition that fits: up to 8 nodes, 7-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --mem=440G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for olivia: Olivia at Sigma2, Norway (HPE Cray EX, 4 GH200 per node,
# Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-71  GPU 0  NUMA node 0
#   rank 1: CPUs 72-143  GPU 1  NUMA node 1
#   rank 2: CPUs 144-215  GPU 2  NUMA node 2
#   rank 3: CPUs 216-287  GPU 3  NUMA node 3

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: --preflight needs --dry-run --save DIR" >&2; exit 1; }

module use "/cluster/work/support/pytorch_module"  # torch 2.8.0, software of the site [1]
module load NRIS/GPU  # torch 2.8.0, software of the site [1]
module load NCCL/2.26.6-GCCcore-14.2.0-CUDA-12.8.0  # torch 2.8.0, software of the site [1]
module load PyTorch/2.8.0  # torch 2.8.0, software of the site [1]
export NCCL_PROTO=^LL128  # LL128 gave wrong sums on this hardware (NVIDIA/nccl issue 2001) [2]
export FI_CXI_RDZV_THRESHOLD=0  # second guard against the wrong sums - no GDRCopy path [2]
export FI_CXI_RDZV_GET_MIN=0  # second guard against the wrong sums - no GDRCopy path [2]
export FI_CXI_RDZV_EAGER_SIZE=0  # no eager data with rendezvous messages [2]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with NCCL [2]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with CUDA, which can deadlock [2]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [2]
export FI_CXI_DEFAULT_TX_SIZE=2048  # send queues large enough for collectives over many ranks [2]
export FI_CXI_RX_MATCH_MODE=hybrid  # message matching continues in software when the NIC's lists are full [2]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [2]
export NCCL_NET_GDR_LEVEL=PHB  # NICs read GPU memory directly where one host bridge has both [2]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # NCCL meets over Slingshot, not the management network [2]
# fail rather than fall back to TCP when the Slingshot plugin cannot be loaded [3]
export NCCL_NET="AWS Libfabric"
# the rendezvous protocol that HPE recommends (with --network=disable_rdzv_get) [2]
export FI_CXI_RDZV_PROTO=alt_read
export OMPI_MCA_pml=cm  # Open MPI sends over libfabric, and fails rather than falling back to TCP [4]
export OMPI_MCA_mtl=ofi  # Open MPI sends over libfabric [4]
export OMPI_MCA_mtl_ofi_av=table  # the address table that the cxi provider supports [4]
export PRTE_MCA_ras_base_launch_orted_on_hn=1  # a daemon on the first node too, as on the site's page [4]
export FI_PROVIDER=cxi  # libfabric's provider for Slingshot [4]
export http_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [5]
export https_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [5]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=72  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

hpclaunch_preflight  # one process on each node checks it before the ranks start

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 GROUP_RANK=$((RANK / 4))  # and the sizes, for torch.distributed
export CUDA_VISIBLE_DEVICES=0,1,2,3  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --mpi=pmix --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 --network=disable_rdzv_get \
  bash -c "$rank_start$rank_end" rank \
  python train.py --deepspeed_config 'ds config.json'

# Sources:
# [1] https://documentation.sigma2.no/code_development/guides/pytorch_olivia/PyTorchMultiNode.html, read 2026-11-23
# [2] https://documentation.sigma2.no/hpc_machines/olivia/nccl.html, read 2026-11-20
# [3] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
# [4] https://documentation.sigma2.no/hpc_machines/olivia/openmpi.html, read 2026-11-20
# [5] https://documentation.sigma2.no/hpc_machines/olivia/software_stack.html, read 2026-11-20
