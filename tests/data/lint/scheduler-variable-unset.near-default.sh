#!/bin/bash
#SBATCH --time=10
srun ./app ${SLURM_CPUS_PER_TASK:-1}
# site: unknown
