#!/bin/bash
#$ -N a/b
#$ -pe 4 smp
#$ -l h_rt=10:00:00
cd /scratch/project
./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
