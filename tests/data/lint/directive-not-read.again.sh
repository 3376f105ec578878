#!/bin/bash
#SBATCH --nodes=2
# SBATCH --nodes=4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 3 directive-not-read
