#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=4
echo "nodes: \$N"
srun ./app
# site: unknown
# expect: 5 escaped-dollar
