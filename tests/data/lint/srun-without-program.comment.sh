#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
srun --kill-on-bad-exit \
# slow: --label
  ./app
# site: unknown
# expect: 5 srun-without-program
