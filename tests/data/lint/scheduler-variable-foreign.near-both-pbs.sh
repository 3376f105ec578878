#!/bin/bash
#PBS -J 1-4
cd $PBS_O_WORKDIR
./app ${PBS_ARRAYID:-$PBS_ARRAY_INDEX}
if [ -n "$PBS_NP" ]; then mpirun -np $PBS_NP ./app; fi
# site: unknown
