#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 3 gpus-conflict
