#!/bin/bash
# site: unknown
# expect: 7 threads-over-cpus
#SBATCH --ntasks=8
#SBATCH -c 2
#SBATCH --time=10
export OMP_NUM_THREADS="4"
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun ./app
