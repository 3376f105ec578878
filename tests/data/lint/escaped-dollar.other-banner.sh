#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
RESULTS=/scratch/a
N=4
echo "  \$RESULTS=$RESULTS"
echo "nodes: \$N"
srun ./app
# site: unknown
# expect: 7 escaped-dollar
