#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --export=NONE
module load app
srun app input
# site: unknown
# expect: 5 export-without-all
