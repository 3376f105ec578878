#!/bin/bash
#SBATCH --export=ALL,DEVICES=0,1
srun ./app
# site: unknown
# expect: 2 export-comma-value
