#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
module load SAMtools/1.9

Pysam/0.15.1-foss-2018b
srun ./app
# site: unknown
# expect: 5 command-refused
