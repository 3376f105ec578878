#!/bin/bash
#$ -N looks like sge
#PBS -l select=1
#PBS -l walltime=1:00:00
mpiexec ./a
# site: unknown
