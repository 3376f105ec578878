#!/bin/bash
#SBATCH --nodes=1
N=${#A[@]}
srun ./app ${B:-x y} ${C[0]} $((100 % 7)) <(ls) 100%
# site: unknown
