#!/bin/bash
#SBATCH --nodes=1 --ntasks=4 --cpus-per-task=8 --time=10
OMP_NUM_THREADS=$((4 * $1)) srun --cpus-per-task=$SLURM_CPUS_PER_TASK ./app
# site: unknown
