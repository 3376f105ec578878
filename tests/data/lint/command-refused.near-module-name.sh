#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
module load SAMtools/1.9 \
  Pysam/0.15.1-foss-2018b
srun ./app
bin/2to3
# site: unknown
# expect: 3 module-old
