#!/bin/bash
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
bwa mem -t $SLURM_CPUS_PER_TASK ref.fa reads.fq > out.sam
samtools sort -@8 out.sam -o out.bam
sort -T 32 names
# site: unknown
