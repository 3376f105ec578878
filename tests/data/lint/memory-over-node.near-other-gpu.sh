#!/bin/bash
#SBATCH --gpus-per-node=h100:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=700G
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
