#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun fairseq-train data --distributed-world-size 16
# site: unknown
