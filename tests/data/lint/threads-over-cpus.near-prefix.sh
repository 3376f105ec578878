#!/bin/bash
#SBATCH --nodes=1 --ntasks=4 --time=01:00:00
OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE ./prepare
srun ./app
# site: unknown
