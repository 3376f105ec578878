#!/bin/bash
# SBATCH—the directives of this job
#SBATCH --comment="one—two"
#SBATCH --time=01:00:00
srun ./app
# site: unknown
