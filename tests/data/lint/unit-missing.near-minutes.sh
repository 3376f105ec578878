#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=30
#SBATCH --mem=4000
srun ./app
# site: unknown
