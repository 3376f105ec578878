#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
(srun --exact -n1 ./app > log 2>&1 &) ; ./b 2>&1 & wait; true && case $1 in a) ./app & ;; esac
wait
# site: unknown
