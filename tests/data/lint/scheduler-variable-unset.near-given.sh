#!/bin/bash
#SBATCH --time=10 -c 8
srun ./app $SLURM_CPUS_PER_TASK
# site: unknown
