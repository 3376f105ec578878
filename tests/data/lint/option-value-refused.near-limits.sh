#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --begin=now-1hour
#SBATCH --propagate=RLIMIT_STACK,NOFILE
#SBATCH --distribution=NoPack
srun ./app
# site: unknown
