#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=8 --time=01:00:00
N=8
srun -c8 bash -c "./app $N"
N=4 srun -c8 bash -c './app $N'
# site: unknown
