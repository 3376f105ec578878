#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=nn1234k  # the project that pays
#SBATCH --partition=accel  # the first partition that fits: up to 7 nodes, 14-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=6  # CPUs for each rank
#SBATCH --mem=372736M  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for saga: Saga at Sigma2, Norway, the nodes with P100 (HPE Apollo, 4 P100 per
# node), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# Framework: horovod; named in the request.
# Each rank binds itself at its start, to up to 6 cores near its GPU, as /sys of its node shows them
# (bind_here.sh).

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module reset  # nothing of the submitting shell stays loaded [1]
# horovod 0.28.1 and tensorflow 2.11.0, software of the site [1]
module load CMake/3.23.1-GCCcore-11.3.0
module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0
export SRUN_CPUS_PER_TASK=6  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
# srun's binding of the ranks; none where each binds itself (bind_here.sh)
cpu_bind=${hpclaunch_cpu_bind:-cores}
export http_proxy=http://proxy.saga:3128/  # compute nodes reach the internet through the proxy only [2]
export https_proxy=http://proxy.saga:3128/  # compute nodes reach the internet through the proxy only [2]
# the launcher starts the ranks, so they find each other by MPI (Gloo needs horovodrun)
export HOROVOD_CONTROLLER=mpi
# and tensors in host memory go by MPI, also where Gloo is the build's default
export HOROVOD_CPU_OPERATIONS=mpi
export OMP_NUM_THREADS=6  # threads for each rank: its share of the node's cores
export OMPI_MCA_btl=^openib  # horovod 0.28.1 and tensorflow 2.11.0, software of the site [1]
export OMPI_MCA_pml=ob1  # horovod 0.28.1 and tensorflow 2.11.0, software of the site [1]
export HOROVOD_MPI_THREADS_DISABLE=1  # horovod 0.28.1 and tensorflow 2.11.0, software of the site [1]
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # this shell's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --mpi=pmix --cpu-bind="$cpu_bind" \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://documentation.sigma2.no/code_development/guides/tensorflow_gpu.html, read 2026-11-23
# [2] https://documentation.sigma2.no/getting_started/data_transfer.html, read 2026-11-23
