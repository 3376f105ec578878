#!/bin/bash
#SBATCH --nodes=1 --time=10
nohup python a.py > log 2>&1 & sleep 5
# site: unknown
# expect: 3 steps-without-wait
