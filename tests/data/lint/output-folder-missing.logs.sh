#!/bin/bash
#SBATCH --output=logs/%x-%j.out
mkdir -p logs
srun ./app
# site: slurm-22.05.yaml
# expect: 2 output-folder-missing
