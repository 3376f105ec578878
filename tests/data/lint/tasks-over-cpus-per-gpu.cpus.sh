#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=7
srun -c 8 ./app
# site: unknown
# expect: 2 tasks-over-cpus-per-gpu
# expect: 3 options-contradict
