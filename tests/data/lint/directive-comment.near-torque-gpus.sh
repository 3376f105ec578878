#!/bin/bash
#PBS -l nodes=1:gpus=2:fast   # two GPUs
#PBS -l walltime=1:00:00   # one hour
mpiexec ./app
# site: unknown
