#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:a100:2
#SBATCH --time=01:00:00
srun --gpus-per-node=4 ./app
srun -N2 --gpus=8 ./app
# site: unknown
# expect: 7 step-over-job
# expect: 8 step-over-job
