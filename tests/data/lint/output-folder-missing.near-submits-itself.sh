#!/bin/bash
#SBATCH --output=logs/%j.out
if [ -z "$SLURM_JOB_ID" ]; then
  mkdir -p ./logs
  exec sbatch "$0" "$@"
fi
srun ./app
# site: slurm-22.05.yaml
