#!/bin/bash
#SBATCH --nodes=1 --time=10
( cd run; python a.py > log ) & disown
# site: unknown
# expect: 3 steps-without-wait
