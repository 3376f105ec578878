#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
workdir=/scratch/model/.....
cd "$workdir" || exit
srun ./app
# site: unknown
# expect: 4 placeholder
