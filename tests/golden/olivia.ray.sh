#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=nn1234k  # the project that pays
#SBATCH --partition=accel  # the first partition that fits: up to 8 nodes, 7-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=1  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --mem=440G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for olivia: Olivia at Sigma2, Norway (HPE Cray EX, 4 GH200 per node,
# Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 1 rank = 2 ranks.
# Framework: ray; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-287  GPU 0,1,2,3  NUMA node 0,1,2,3

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: --framework ray needs --dry-run --save DIR" >&2; exit 1; }

module load NRIS/GPU  # the software stack for the GPU nodes [1]
module load OpenMPI/5.0.10-GCC-14.3.0  # the site's Open MPI for Slingshot [2]
module load NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0  # NCCL with its Slingshot plugin [3]
export NCCL_PROTO=^LL128  # LL128 gave wrong sums on this hardware (NVIDIA/nccl issue 2001) [3]
export FI_CXI_RDZV_THRESHOLD=0  # second guard against the wrong sums - no GDRCopy path [3]
export FI_CXI_RDZV_GET_MIN=0  # second guard against the wrong sums - no GDRCopy path [3]
export FI_CXI_RDZV_EAGER_SIZE=0  # no eager data with rendezvous messages [3]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with NCCL [3]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with CUDA, which can deadlock [3]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [3]
export FI_CXI_DEFAULT_TX_SIZE=2048  # send queues large enough for collectives over many ranks [3]
export FI_CXI_RX_MATCH_MODE=hybrid  # message matching continues in software when the NIC's lists are full [3]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [3]
export NCCL_NET_GDR_LEVEL=PHB  # NICs read GPU memory directly where one host bridge has both [3]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # NCCL meets over Slingshot, not the management network [3]
# fail rather than fall back to TCP when the Slingshot plugin cannot be loaded [4]
export NCCL_NET="AWS Libfabric"
# the rendezvous protocol that HPE recommends (with --network=disable_rdzv_get) [3]
export FI_CXI_RDZV_PROTO=alt_read
export OMPI_MCA_pml=cm  # Open MPI sends over libfabric, and fails rather than falling back to TCP [2]
export OMPI_MCA_mtl=ofi  # Open MPI sends over libfabric [2]
export OMPI_MCA_mtl_ofi_av=table  # the address table that the cxi provider supports [2]
export PRTE_MCA_ras_base_launch_orted_on_hn=1  # a daemon on the first node too, as on the site's page [2]
export FI_PROVIDER=cxi  # libfabric's provider for Slingshot [2]
export http_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [1]
export https_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export RAY_USAGE_STATS_ENABLED=0  # Ray sends no statistics about its use
# who has not this job's token runs nothing in its cluster (Ray 2.52 and newer)
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$HPCLAUNCH_JOB_FOLDER/ray_token
# a new token for each run, in the folder of the job
install -m 600 /proc/sys/kernel/random/uuid "$RAY_AUTH_TOKEN_PATH"
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # this shell's own
gpus=('0,1,2,3')  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
export HPCLAUNCH_NODE=$RANK  # its number: 0 has Ray's head and runs the program
set -- bash "$HPCLAUNCH_FILES/ray_node.sh" 2 288 4 "$@"  # nodes, CPUs and GPUs of each
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --mpi=pmix --cpu-bind=mask_cpu:0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff --network=disable_rdzv_get \
  bash -c "$rank_start$rank_end" rank \
  python driver.py

# Sources:
# [1] https://documentation.sigma2.no/hpc_machines/olivia/software_stack.html, read 2026-11-20
# [2] https://documentation.sigma2.no/hpc_machines/olivia/openmpi.html, read 2026-11-20
# [3] https://documentation.sigma2.no/hpc_machines/olivia/nccl.html, read 2026-11-20
# [4] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
