#!/bin/bash
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
bwa mem -t 8 ref.fa a.fq > a.sam
assemble a.sam
# site: unknown
