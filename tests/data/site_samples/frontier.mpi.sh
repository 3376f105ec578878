#!/bin/bash
#SBATCH -A abc123
#SBATCH -J flow
#SBATCH -o %x-%j.out
#SBATCH -t 01:00:00
#SBATCH -p batch
#SBATCH -N 1024
cd "$MEMBERWORK/abc123/run"
cp "$PROJWORK/abc123/input" input
srun -N 1024 -n 8192 -c 7 --gpus-per-task=1 --gpu-bind=closest ./flow
# A form of OLCF's user guide, for a program of MPI alone.
