#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
for i in 1 2; do
    srun --exact -n1 ./app $i &; done
wait
# site: unknown
# expect: 5 shell-syntax
# expect: 5 status-lost
