#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --gres=gpus:2
#SBATCH --gpus-per-node=gpu:2
#SBATCH --gpus=2,a100
#SBATCH --gpus-per-node=2:a100
#SBATCH --nodes=0
#SBATCH --nodes=2,
#SBATCH --dependency=afterok
#SBATCH -M me@site.org
#SBATCH --nodelist=node[01-04
#SBATCH --exclude=node[01,02
#SBATCH --output=logs/
#SBATCH --ntasks=
#SBATCH --mem=
srun ./app
# site: unknown
# expect: 3 option-value-refused
# expect: 4 directive-repeated
# expect: 4 option-value-refused
# expect: 5 option-value-refused
# expect: 6 option-value-refused
# expect: 7 directive-repeated
# expect: 7 option-value-refused
# expect: 8 option-value-refused
# expect: 9 option-value-refused
# expect: 10 option-value-refused
# expect: 11 option-value-refused
# expect: 12 option-value-refused
# expect: 13 option-value-refused
# expect: 13 output-folder-missing
# expect: 14 option-value-refused
# expect: 15 option-value-refused
