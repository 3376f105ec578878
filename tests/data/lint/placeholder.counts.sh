#!/bin/bash
#SBATCH --nodes=Nnode
#SBATCH --ntasks=Ntask
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 placeholder
