#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
python3 compare.py --in a.csv
# site: unknown
# expect: 4 one-process-for-tasks
