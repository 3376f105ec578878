#!/bin/bash
#SBATCH --account=proj
#SBATCH --partition=dcgp_usr_prod
#SBATCH --ntasks-per-node=112
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app
# site: leonardo
# expect: 3 queue-unknown
