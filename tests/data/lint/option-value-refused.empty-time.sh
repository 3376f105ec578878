#!/bin/bash
#SBATCH --time=
srun ./app
# site: unknown
# expect: 2 option-value-refused
