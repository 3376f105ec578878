#!/bin/bash
#SBATCH --hint=nomultithread
#SBATCH --time=01:00:00
srun -n 2 --cpu-bind=map_cpu:1,2 ./app
# site: unknown
# expect: 4 hint-with-cpu-bind
