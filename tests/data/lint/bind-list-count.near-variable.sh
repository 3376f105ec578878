#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
export SLURM_NTASKS_PER_NODE=8
srun --cpu-bind=map_cpu:49,57,17,25,1,9,33,41 ./application
# site: unknown
