#!/bin/bash
# site: unknown
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=4
#SBATCH --time=10
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export OMP_NUM_THREADS=4
srun ./app
export OMP_NUM_THREADS=8
srun ./other
