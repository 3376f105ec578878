#!/bin/bash
#SBATCH -N 8
#SBATCH -n 100
#SBATCH --time=01:00:00
module load tool
cd /data/run || exit 1
sometool --input a.fa --num_threads 100
# site: unknown
# expect: 7 tasks-for-threads
