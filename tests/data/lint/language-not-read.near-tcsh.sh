#!/bin/tcsh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
setenv A 1
srun ./app $A
# site: unknown
