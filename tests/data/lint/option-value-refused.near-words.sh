#!/bin/bash
#SBATCH --nodes=1
#SBATCH --distribution=block:cyclic,Pack
#SBATCH -m plane=4
#SBATCH --begin=now+1hour
#SBATCH --propagate=STACK,MEMLOCK
#SBATCH --switches=1@00:10:00
#SBATCH --time=01:00:00
srun -n 2 --cpu-bind=verbose,mask_cpu:0xf,0xf0 --mem-bind=verbose,local ./app
# site: unknown
