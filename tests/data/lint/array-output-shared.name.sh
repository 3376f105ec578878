#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --array=1-100
#SBATCH --output=run.out
srun ./a.out
# site: slurm-22.05.yaml
# expect: 4 array-output-shared
