#!/bin/bash
#$ -l h_rt=01:00:00
#$ -j true
#$ -m e,a
#$ -t 0-9
./app $SGE_TASK_ID
# site: unknown
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-undocumented
