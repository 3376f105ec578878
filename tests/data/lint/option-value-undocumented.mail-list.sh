#!/bin/bash
#SBATCH --time=10 --mail-type=BEGIN,FINISH
srun ./app
# site: unknown
# expect: 2 option-value-undocumented
