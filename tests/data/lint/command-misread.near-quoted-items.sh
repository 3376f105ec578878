#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
NAMES=("a, b" 'c,' "d")
POINTS=(1,2 3,4)
for name in "${NAMES[@]}"; do srun ./app "$name" "${POINTS[@]}"; done
# site: unknown
