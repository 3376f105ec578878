#!/bin/bash
#SBATCH --time=01:00:00
#SBATCHX --nodes=2
#SBATCH: --nodes=2
#SBATCH --job-name="train
srun ./app
# site: unknown
# expect: 3 directive-stray-word
# expect: 4 directive-stray-word
# expect: 5 directive-stray-word
