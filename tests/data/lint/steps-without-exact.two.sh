#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=small
#SBATCH --ntasks=2
#SBATCH --time=01:00:00
srun -n1 ./a &
srun -n1 ./b &
wait
# site: lumi-g
# expect: 6 steps-without-exact
# expect: 7 status-lost
