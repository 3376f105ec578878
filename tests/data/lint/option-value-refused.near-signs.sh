#!/bin/bash
#SBATCH --nodes=+1
#SBATCH --ntasks=+4
#SBATCH --mem=+4G
#SBATCH --gpus=4,
#SBATCH --array=1-3,
#SBATCH --dependency=singleton,afterok:1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
