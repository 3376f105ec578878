#!/bin/bash
# One error for one value.
#SBATCH -t
srun ./app
# site: unknown
# expect: 3 option-value-refused
