#!/bin/bash
#SBATCH --tasks-per-node=4
#BATCH text
#patch --help
srun ./app
# site: unknown
