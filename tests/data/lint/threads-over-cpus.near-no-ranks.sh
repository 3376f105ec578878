#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
#SBATCH --ntasks-per-node=8
export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE
./app
# site: unknown
