#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun python train.py
status=$?
echo done
exit $status
# site: unknown
