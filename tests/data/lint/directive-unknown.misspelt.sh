#!/bin/bash
#SBATCH --ntask-per-nodes=8
srun ./app
# site: unknown
# expect: 2 directive-unknown
