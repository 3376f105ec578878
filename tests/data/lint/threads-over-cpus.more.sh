#!/bin/bash
# site: unknown
# expect: 7 threads-over-cpus
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=7
#SBATCH --time=10
export OMP_NUM_THREADS=64
srun --cpus-per-task=$SLURM_CPUS_PER_TASK ./app
