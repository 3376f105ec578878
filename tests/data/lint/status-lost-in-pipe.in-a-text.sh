#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
sh -c 'cd run && srun ./a.out | tee log'
# site: unknown
# expect: 3 status-lost-in-pipe
