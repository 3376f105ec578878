#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
gcc -c part2.c -o part2.o
srun ./part1
# site: unknown
