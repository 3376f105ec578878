#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --reservation=training_day1
srun ./app
# site: unknown
# expect: 4 reservation-named
