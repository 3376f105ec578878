#!/bin/bash
#SBATCH --cpus-per-task=8
#SBATCH --mem=2000G
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
