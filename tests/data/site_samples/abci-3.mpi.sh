#!/bin/bash
#PBS -q rt_HF
#PBS -l select=2:mpiprocs=8
#PBS -l walltime=01:00:00
#PBS -P grpname
#PBS -j oe
cd "$PBS_O_WORKDIR"
source /etc/profile.d/modules.sh
module load hpcx/2.20
export UCX_MAX_RNDV_RAILS=8 UCX_MAX_EAGER_RAILS=2
mpirun -np 16 -map-by ppr:8:node -hostfile "$PBS_NODEFILE" ./a.out
# A form of ABCI's page on MPI, with a rank per GPU.
