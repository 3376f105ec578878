#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --gres=gpu=2
#SBATCH --array=1..4
#SBATCH --cpus-per-task=8
srun ./app
# site: unknown
# expect: 4 option-value-refused
# expect: 5 option-value-refused
