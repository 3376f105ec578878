#!/bin/sh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
. ./load_module.sh
. config.env
srun ./app
# site: unknown
