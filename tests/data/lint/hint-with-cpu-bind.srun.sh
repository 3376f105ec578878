#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun -n 2 --hint=nomultithread --cpu-bind=mask_cpu:0x1,0x2 ./app
# site: unknown
# expect: 4 hint-with-cpu-bind
