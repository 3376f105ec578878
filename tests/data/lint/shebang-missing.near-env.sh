#!/usr/bin/env -S bash -l
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
