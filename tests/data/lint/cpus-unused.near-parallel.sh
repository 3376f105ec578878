#!/bin/bash
#SBATCH --nodes=1
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
parallel -j 4 bwa mem -t 8 ref.fa {} ::: *.fq
ls *.fq | /usr/bin/xargs -P 4 -n 1 bwa mem -t 8 ref.fa
# site: unknown
