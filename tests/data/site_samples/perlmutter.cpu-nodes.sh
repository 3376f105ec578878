#!/bin/bash -l
#SBATCH -A m1234
#SBATCH -q regular
#SBATCH -C cpu
#SBATCH -N 2
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH -t 00:10:00
export OMP_NUM_THREADS=8 OMP_PLACES=threads OMP_PROC_BIND=spread
srun --cpu-bind=cores ./plasma inputs > output.txt
# A form of WarpX' documentation for Perlmutter's CPU nodes, which the profile does not describe.
