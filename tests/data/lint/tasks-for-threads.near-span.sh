#!/bin/bash
#BSUB -n 16
#BSUB -R "span[hosts=1]"
#BSUB -W 1:00
bwa mem -t 16 ref.fa reads.fq > out.sam
# site: unknown
