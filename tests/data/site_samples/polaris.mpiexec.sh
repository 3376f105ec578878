#!/bin/bash -l
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -q debug
#PBS -A MyProject
cd "$PBS_O_WORKDIR"
NODES=$(wc -l < "$PBS_NODEFILE")
RANKS=4
mpiexec -n $((NODES * RANKS)) --ppn "$RANKS" --depth=8 --cpu-bind depth ./solver
# A form of ALCF's page on running jobs.
