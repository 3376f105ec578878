#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun -n4 make CC=mpicc all
srun -n1 nsys export --type sqlite a.nsys-rep
srun --mpi=pmix ./app set x
srun -u env A=1 ./app
srun -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v -l -u -v ./app
# site: unknown
