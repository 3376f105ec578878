#!/bin/bash
#SBATCH -N #NODES
#SBATCH -t 1:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
