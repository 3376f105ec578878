#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --nodes=2
#SBATCH --output=run.out
srun ./a.out
# site: slurm-22.05.yaml
