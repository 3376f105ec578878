#!/bin/sh
#$ -l h_rt=01:00:00
#$ -t 1-9:0
./app $SGE_TASK_ID
# site: unknown
# expect: 3 option-value-refused
