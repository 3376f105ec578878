#!/bin/bash
#SBATCH --nodes=1 --time=10
cd /scratch/me
my.path=/scratch/me
my.name=x
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
