#!/bin/bash
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
bwa mem -t 32 ref.fa reads.fq > out.sam
# site: unknown
# expect: 4 threads-over-job
