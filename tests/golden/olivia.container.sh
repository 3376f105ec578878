#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=nn1234k  # the project that pays
#SBATCH --partition=accel  # the first partition that fits: up to 8 nodes, 7-00:00:00
#SBATCH --nodes=1  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --mem=440G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for olivia: Olivia at Sigma2, Norway (HPE Cray EX, 4 GH200 per node,
# Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 1 node x 4 ranks = 4 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-71  GPU 0  NUMA node 0
#   rank 1: CPUs 72-143  GPU 1  NUMA node 1
#   rank 2: CPUs 144-215  GPU 2  NUMA node 2
#   rank 3: CPUs 216-287  GPU 3  NUMA node 3

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
module load NRIS/GPU  # the software stack for the GPU nodes [1]
module load OpenMPI/5.0.10-GCC-14.3.0  # the site's Open MPI for Slingshot [2]
module load NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0  # NCCL with its Slingshot plugin [3]
module load NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0  # given in environment
APPTAINER_BIND+=",/usr/lib64,/cluster"  # in the container: MPI and fabric of the site
# those of modules that are loaded
for bind in "$EBROOTLIBFABRIC" "$EBROOTNCCL" "$EBROOTOPENMPI" "$EBROOTAWSMINOFIMINNCCL" \
  "$EBROOTCUDA:/usr/local/cuda"; do [ -z "${bind%%:*}" ] || APPTAINER_BIND+=,$bind; done
# and folders that are there; where a name is a link, under both names
for folder in "/cluster/work/projects/$SLURM_JOB_ACCOUNT" "/cluster/projects/$SLURM_JOB_ACCOUNT" \
  "$HPCLAUNCH_JOB_FOLDER" "$HPCLAUNCH_FILES" "$PWD"; do
  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue
  case $folder$real in *[,:]*) echo "hpclaunch: a comma or colon keeps $folder out" >&2; continue ;; esac
  APPTAINER_BIND+=,$real$([ "$real" = "$folder" ] || echo ",$real:$folder")
done
export APPTAINER_BIND=${APPTAINER_BIND#,}
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
unset NCCL_NET  # a job of one node has no Slingshot service, so forcing the plugin makes NCCL fail [4]
export OMPI_MCA_pml=ob1  # Slingshot is not initialised in jobs of one node [2]
export OMPI_MCA_btl=sm,smcuda,self  # shared memory and CUDA between the ranks of a node [2]
export http_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [1]
export https_proxy=http://10.63.2.48:3128/  # compute nodes reach the internet through the proxy only [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=72  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=4  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3)  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --mpi=pmix --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 \
  bash -c "$rank_start$rank_end" rank \
  apptainer exec --nv '/cluster/images/it'"'"'s.sif' bash -c \
  'source "$HOME/venv/bin/activate" && exec -- "$@"' venv python3 -m hpclaunch.train --epochs 3 --data \
  '/data/my mnist'

# Sources:
# [1] https://documentation.sigma2.no/hpc_machines/olivia/software_stack.html, read 2026-11-20
# [2] https://documentation.sigma2.no/hpc_machines/olivia/openmpi.html, read 2026-11-20
# [3] https://documentation.sigma2.no/hpc_machines/olivia/nccl.html, read 2026-11-20
# [4] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
