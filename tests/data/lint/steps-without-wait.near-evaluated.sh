#!/bin/bash
#SBATCH --time=01:00:00
command="srun --ntasks=1 ./app > out &"
eval $command
wait
# site: unknown
# expect: 4 status-lost
