#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a || true
# site: unknown
