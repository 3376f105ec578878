#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=4
cd "~/runs" || exit
for i in {1..$N}; do
    srun ./app $i
done
# site: unknown
# expect: 5 command-misread
# expect: 6 command-misread
