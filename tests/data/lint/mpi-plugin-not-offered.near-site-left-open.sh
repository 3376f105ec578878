#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
srun --mpi=pmix ./app
# site: generic-slurm
