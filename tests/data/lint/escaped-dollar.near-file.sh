#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=4
echo "echo \$N" > later.sh
srun bash -c "echo \$SLURM_PROCID"
echo 'costs $N'
srun ./app
# site: unknown
