#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time=01:00:00
srun ./prepare | tee prepare.log
srun ./app | tee app.log
# site: unknown
# expect: 5 status-lost-in-pipe
