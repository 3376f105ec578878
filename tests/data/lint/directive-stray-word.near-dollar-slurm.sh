#!/bin/bash
#SBATCH -N 1
#SBATCH -t 10
#$ -N looks like sge
#$ -q all.q of the old cluster
srun ./a
# site: unknown
