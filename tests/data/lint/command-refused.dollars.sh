#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
$SBATCH --nodes=1
for temperature in 300 400; do
  name="$(date +%F)-run-${$temperature}"
  srun ./app "$name"
done
# site: unknown
# expect: 4 command-refused
# expect: 6 command-refused
