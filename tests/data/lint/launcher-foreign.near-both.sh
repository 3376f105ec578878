#!/bin/bash
#PBS -l select=2
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
if [ -n "$SLURM_JOB_ID" ]; then
  srun ./app
else
  mpiexec ./app
fi
# site: unknown
