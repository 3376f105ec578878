#!/bin/bash
#SBATCH --gpus-per-node=a100:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=100G
#SBATCH --mem=1T
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
# expect: 4 directive-repeated
# expect: 5 memory-over-node
