#!/bin/bash
#PBS -N run
#PBS -l walltime=01:00:00
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app
# site: unknown
