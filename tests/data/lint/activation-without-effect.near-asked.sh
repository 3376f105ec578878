#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if bash -lc "module load cuda/12"; then srun ./app; fi
bash -c "source env/bin/activate" || exit 1
# site: unknown
