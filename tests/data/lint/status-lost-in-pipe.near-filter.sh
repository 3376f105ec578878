#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
./train > log
grep accuracy log | tee summary.txt
# site: unknown
