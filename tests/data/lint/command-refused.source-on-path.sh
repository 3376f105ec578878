#!/bin/sh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
source load_module.sh
srun ./app
# site: unknown
# expect: 4 command-refused
