#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
for seed in 1 2; do
  srun ./app $seed
done
date
# site: unknown
# expect: 5 status-lost
