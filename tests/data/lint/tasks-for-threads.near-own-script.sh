#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
./run_all.sh
bwa mem -t 4 ref.fa reads.fq > out.sam
# site: unknown
