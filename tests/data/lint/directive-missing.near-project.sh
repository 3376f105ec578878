#!/bin/bash
# site: abci-3
#PBS -P gaa50000
#PBS -q rt_HF
#PBS -l select=1
#PBS -l walltime=0:30:00
source /etc/profile.d/modules.sh
module load hpcx/2.20
mpirun -n 8 ./app
