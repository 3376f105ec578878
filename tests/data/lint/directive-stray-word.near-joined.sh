#!/bin/bash
#SBATCH --time=01:00:00
##SBATCH --nodes=2
#SBATCH-N 2
#SBATCH --job-name="train it" # don't
#SBATCH
#SBATCH # a word
srun ./app
#SBATCHX --nodes=4
# site: unknown
