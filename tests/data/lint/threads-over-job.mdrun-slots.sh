#!/bin/bash
#$ -cwd
#$ -l h_rt=1:00:00
#$ -pe smp 2
gmx mdrun -s a.tpr -ntmpi 1 -ntomp 16
# site: unknown
# expect: 5 threads-over-job
