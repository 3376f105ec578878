#!/bin/bash
#SBATCH --ntasks=300 --cpus-per-task=1 --time=10
orthofinder -f data -t 300
# site: unknown
# expect: 3 tasks-for-threads
