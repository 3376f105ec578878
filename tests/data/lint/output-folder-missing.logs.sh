#!/bin/bash
#SBATCH --output=logs/%x-%j.out
mkdir -p logs
srun ./app
# site: unknown
# expect: 2 output-folder-missing
