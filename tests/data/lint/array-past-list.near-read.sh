#!/bin/bash
#SBATCH --array=0-4 --time=10
CITY=""
read -r -a CITY < cities
FILE=none
FILE[4]=last
./app ${CITY[$SLURM_ARRAY_TASK_ID]} ${FILE[$SLURM_ARRAY_TASK_ID]}
# site: unknown
