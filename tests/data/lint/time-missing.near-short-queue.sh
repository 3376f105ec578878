#!/bin/bash
#PBS -q GPUshort
#PBS -l nodes=1:ppn=4
cd "$PBS_O_WORKDIR"
./app
# site: unknown
