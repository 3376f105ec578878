#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
FIRST=$(srun -n1 ./where 2>/dev/null)
srun ./app $FIRST
# site: unknown
