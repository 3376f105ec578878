#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --ntasks=4 \ 
    ./app
# site: unknown
# expect: 4 continuation-blank
