#!/bin/bash
#PBS -l walltime=01:00:00
#PBS -l nodes=1:ppn=4
cd $PBS_O_WORKDIR
./app $PBS_NUM_PPN $PBS_JOBID $PBS_GPUFILE
# site: unknown
