#!/bin/bash
#SBATCH --account=def-jsmith
#SBATCH --gpus=8
#SBATCH --ntasks-per-gpu=1
#SBATCH --cpus-per-task=6
#SBATCH --mem-per-cpu=5G
#SBATCH --time=0-03:00
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" ./program
# A form of the Alliance's page on GPUs with Slurm.
