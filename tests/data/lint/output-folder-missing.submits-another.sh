#!/bin/bash
#SBATCH --output=logs/%j.out
mkdir -p logs
srun ./app
sbatch next.sh "$1"
# site: slurm-22.05.yaml
# expect: 2 output-folder-missing
