#!/bin/bash
#SBATCH --nodes=1
#SBATCH --distribution=blocks
#SBATCH --begin=monday
#SBATCH --propagate=STACKS
#SBATCH --time=01:00:00
srun --cpu-bind=numa --mem-bind=near ./app
# site: unknown
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
# expect: 7 option-value-refused
