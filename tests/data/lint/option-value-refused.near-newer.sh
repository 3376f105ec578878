#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --requeue=expedite
#SBATCH --gpu-bind=map:0,1
#SBATCH --profile=task,disk
#SBATCH --exclusive=allocation
#SBATCH --begin=uts1893456000
srun ./app
# site: unknown
