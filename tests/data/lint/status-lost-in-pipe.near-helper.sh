#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat list | python sort.py | head -1 > first
python -c 'print(1)' | tee one
./app
# site: unknown
