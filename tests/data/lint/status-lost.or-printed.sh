#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a || echo "the run failed"
# site: unknown
# expect: 3 status-lost
