#!/bin/bash
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
bwa mem -t 20 ref.fa a.fq > a.sam
samtools sort -@ 4 a.sam -o a.bam
# site: unknown
