#!/bin/bash
#$ -cwd
#$ -t 1-4
seeds=(3 5 8)
./app ${seeds[SGE_TASK_ID]}
# site: unknown
# expect: 3 array-past-list
