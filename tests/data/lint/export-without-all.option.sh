#!/bin/bash
#SBATCH --time=01:00:00
module load app
srun -n 4 --export=OMP_NUM_THREADS=4 app
# site: unknown
# expect: 4 export-without-all
