#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cd $PBS_O_WORKDIR
srun ./app
# site: unknown
# expect: 4 scheduler-variable-foreign
