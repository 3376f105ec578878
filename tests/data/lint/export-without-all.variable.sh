#!/bin/bash
#SBATCH --time=01:00:00
EXE=/project/bin/app
srun --export=OMP_NUM_THREADS=4 $EXE input
# site: unknown
# expect: 4 export-without-all
