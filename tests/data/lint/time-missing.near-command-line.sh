#!/bin/bash
#PBS -m n
cd "$PBS_O_WORKDIR"
mpirun -hostfile "$PBS_NODEFILE" ./app
# site: unknown
