#!/bin/sh
#PBS -q rt_HF
#PBS -l select=1
#PBS -l walltime=1:23:45
#PBS -P grpname
cd "${PBS_O_WORKDIR}"
. /etc/profile.d/modules.sh
module load cuda/12.6/12.6.1
./a.out
# A form of ABCI's page on jobs.
