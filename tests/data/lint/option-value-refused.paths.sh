#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --output=~/logs/%j.out
#SBATCH --dependency=after_ok:12
#SBATCH --gres=gpu:4:a100
srun ./app
# site: unknown
# expect: 4 option-value-refused
# expect: 4 output-folder-missing
# expect: 5 option-value-refused
# expect: 6 option-value-refused
