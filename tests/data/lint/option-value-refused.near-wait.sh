#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --wait=60 --kill-on-bad-exit=1 ./app
# site: unknown
