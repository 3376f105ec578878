#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --array=1-9
#SBATCH --open-mode=append
#SBATCH --output=run.out
srun ./a.out
# site: slurm-22.05.yaml
