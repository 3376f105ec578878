#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ -n "$PBS_JOBID" ]; then
  cd $PBS_JOBID
fi
echo ${PBS_O_WORKDIR:-$PWD}
srun ./app
# site: unknown
