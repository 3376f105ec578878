#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --partition=“long”
#SBATCH --exclude=n1‑n2
#SBATCH --constraint=‘a100’
srun ./app
# site: unknown
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
