#!/bin/bash
#SBATCH --nodes=1 --time=10
SCRIPT=train.py
DATA=/scratch/data
python '${SCRIPT}' x
cp '$DATA' /tmp
srun ./app --data '$DATA'
# site: unknown
# expect: 5 escaped-dollar
# expect: 6 escaped-dollar
# expect: 7 escaped-dollar
