#!/bin/bash
#SBATCH --nodes=1 ### one
#SBATCH --time=01:00:00  #### an hour
srun ./app
# site: unknown
