#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
NAMES=("a b", 'c', d)
SIZES=(
  1,
  2
)
for name in "${NAMES[@]}"; do srun ./app "$name" "${SIZES[@]}"; done
# site: unknown
# expect: 4 command-misread
# expect: 5 command-misread
