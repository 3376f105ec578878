#!/bin/bash
#SBATCH --time=10 --nodes=2 --ntasks=8
srun ./app $SLURM_NTASKS_PER_NODE
# site: unknown
# expect: 3 scheduler-variable-unset
