#!/bin/bash
#SBATCH -gres=gpu:1
#SBATCH -gpus=1
#SBATCH -exclusive
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
# expect: 4 option-value-refused
