#!/bin/bash
#SBATCH --pty
#SBATCH --immediate=60
#SBATCH -u
#SBATCH -K1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-unknown
# expect: 3 directive-unknown
# expect: 4 directive-unknown
# expect: 5 directive-unknown
