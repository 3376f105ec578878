#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
HERE=${SLURM_SUBMIT_DIR:-$(dirname "$0")}
srun "$HERE/app"
# site: unknown
