#!/bin/bash
#SBATCH --time=01:00:00
##SBATCH --nodes=2
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
srun ./app
# site: unknown
# expect: 4 options-contradict
