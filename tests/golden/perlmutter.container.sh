#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=m1234  # the project that pays
#SBATCH --qos=debug  # the first qos that fits: up to 8 nodes, 00:30:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH -C gpu  # GPU nodes; -C "gpu&hbm80g" for the 256 nodes with A100 of 80 GB [1]

# Written by hpclaunch 0.1.0 for perlmutter: Perlmutter at NERSC, Berkeley, GPU nodes (HPE Cray EX, 4 A100 per
# node, Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 48-63  GPU 0  NUMA node 3
#   rank 1: CPUs 32-47  GPU 1  NUMA node 2
#   rank 2: CPUs 16-31  GPU 2  NUMA node 1
#   rank 3: CPUs 0-15  GPU 3  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module load cray-mpich  # the MPI of the machine [2]
# and folders that are there; where a name is a link, under both names
for folder in "$PSCRATCH" "$SCRATCH" "/global/common/software" "/global/cfs/cdirs" "$HPCLAUNCH_JOB_FOLDER" \
  "$HPCLAUNCH_FILES" "$PWD"; do
  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue
  case $folder$real in *[,:]*) echo "hpclaunch: a comma or colon keeps $folder out" >&2; continue ;; esac
  HPCLAUNCH_BINDS+=,$real:$real$([ "$real" = "$folder" ] || echo ",$real:$folder")
done
export HPCLAUNCH_BINDS=${HPCLAUNCH_BINDS#,}
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's watch on memory, as NERSC's tutorials for SC set it [3]
# no host memory registered with CUDA, as NERSC's own containers have it [4]
export FI_CXI_DISABLE_HOST_REGISTER=1
export NCCL_SOCKET_IFNAME=hsn  # NCCL finds the other nodes by the interfaces of Slingshot [4]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [4]
export NCCL_NET_GDR_LEVEL=PHB  # NICs read GPU memory directly where one host bridge has both [4]
# against hangs of NCCL that NERSC lists among the vendor's bugs [5]
export FI_CXI_RDZV_GET_MIN=0
export FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD=16777216
export MPICH_OFI_NIC_POLICY=GPU  # Cray MPICH sends by the NIC that is nearest to the rank's GPU [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=16  # threads for each rank: the cores it is bound to

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 GROUP_RANK=$((RANK / 4))  # and the sizes, for torch.distributed
export CUDA_VISIBLE_DEVICES=0,1,2,3  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff \
  bash -c "$rank_start$rank_end" rank \
  bash -c 'mapfile -t names < <(compgen -e | grep -vxE "PATH|HOME|TMPDIR|XDG_.*|LD_.*|PYTHONHOME|BASH_.*|SHELLOPTS|BASHOPTS"); mapfile -t binds < <(tr , "\n" <<< "${HPCLAUNCH_BINDS#,}" | awk "!n[\$0]++"); exec podman-hpc run --rm --network=host --ipc=host --pid=host --gpu --nccl --workdir="$PWD" "${binds[@]/#/--volume=}" "${names[@]/#/--env=}" "nersc/pytorch:25.06.01" "$@"' container python train.py

# Sources:
# [1] https://github.com/BLAST-WarpX/warpx, read 2026-11-22, community
# [2] https://github.com/saforem2/ezpz, read 2026-11-23, community
# [3] https://github.com/NERSC/sc25-dl-tutorial, read 2026-11-23
# [4] https://github.com/NERSC/podman-hpc, read 2026-11-23
# [5] https://docs.nersc.gov/systems/perlmutter/vendorbugs/, read 2026-11-23, community
