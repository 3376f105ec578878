#!/bin/bash
#SBATCH -A m1234
#SBATCH -q regular
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun -n 8 ./app
# site: perlmutter
# expect: - directive-missing
