#!/bin/bash
#SBATCH --signal=B:USR1@120
#SBATCH --signal=SIGUSR1@60
#SBATCH -D /data
#SBATCH --mem=16GB
#SBATCH --nodes=2-4
#SBATCH --open-mode=append
#SBATCH --exclusive=user
#SBATCH --mem=0
#SBATCH --time=01:00:00
srun --ntasks=$N ./app
# site: unknown
# expect: 5 directive-repeated
