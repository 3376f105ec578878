#!/bin/bash
#SBATCH --job-name=@name@ -N 1 -n 1
#SBATCH --time=10
srun ./@program@
# site: unknown
# expect: 2 placeholder
# expect: 1 line-endings
