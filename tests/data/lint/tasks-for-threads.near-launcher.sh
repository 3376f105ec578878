#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
bwa index ref.fa -t 1
mpirun app --threads 1
# site: unknown
