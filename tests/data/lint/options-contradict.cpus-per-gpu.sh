#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --gpus=1
#SBATCH --cpus-per-gpu=4
#SBATCH --cpus-per-task=2
srun ./app
# site: unknown
# expect: 6 options-contradict
