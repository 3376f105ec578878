#!/bin/bash
#PBS -N "a # b"
#PBS -l walltime=1:00:00
mpiexec ./app
# site: unknown
