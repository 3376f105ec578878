#!/bin/bash
#SBATCH --nodes=1 --ntasks=4 --time=01:00:00
SLURM_CPUS_ON_NODE=2
export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE
srun ./app
# site: unknown
