#!/bin/bash
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
bwa mem -t 8 ref.fa a.fq > a.sam &
bwa mem -t 8 ref.fa b.fq > b.sam &
wait
# site: unknown
