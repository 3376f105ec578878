#!/bin/bash
#SBATCH --account=def-jsmith
#SBATCH --nodes=2
#SBATCH --gpus-per-node=a100:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=510000M
#SBATCH --time=0-03:00
module load python/3.12
srun -N "$SLURM_NNODES" -n "$SLURM_NNODES" -c 12 bash -c '
  virtualenv --no-download "$SLURM_TMPDIR/env" && . "$SLURM_TMPDIR/env/bin/activate"
  pip install torch torchvision --no-index
'
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
export MASTER_ADDR=$(hostname)
. "$SLURM_TMPDIR/env/bin/activate"
srun --cpus-per-task=12 python train.py --init_method "tcp://$MASTER_ADDR:$((10000 + SLURM_JOB_ID % 10000))"
# A form of the Alliance's page on PyTorch, with several CPUs per rank as it advises for data loaders.
