#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
shopt -s extglob
srun ./app
rm -r !(*.pdb|config.json)
# site: unknown
