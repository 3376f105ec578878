#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@180
trap 'touch stop' USR1
for i in 1 2 3; do
  ./step $i
done
# site: unknown
