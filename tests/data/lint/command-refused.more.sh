#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
scource venv/bin/activate
accelarate launch train.py
export ARGS= --lr 0.1
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
