#!/bin/bash
#BSUB -n 16
#BSUB -W 1:00
bwa mem -t 16 ref.fa reads.fq > out.sam
# site: unknown
# expect: 4 tasks-for-threads
