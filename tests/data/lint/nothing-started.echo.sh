#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
cd $SLURM_SUBMIT_DIR
export A=1
echo ready
# site: unknown
# expect: - nothing-started
