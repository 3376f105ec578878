#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
files=(a b c)
more=( ${files} )
srun ./app ${more[1]}
# site: unknown
# expect: 5 array-of-one
