#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --mem-per-cpu=16G
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
# expect: 5 memory-over-node
