#!/bin/bash
#PBS -l select=2,walltime=01:00:00
#BSUB -W 01:00
cd "$PBS_O_WORKDIR" || exit
srun -n 8 ./app
# site: unknown
# expect: 5 launcher-foreign
