#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --array=1-100
#SBATCH --output=run-%A_%a.out
#SBATCH --error=run-%5a.err
srun ./a.out
# site: slurm-22.05.yaml
