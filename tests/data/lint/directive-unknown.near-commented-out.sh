#!/bin/bash
##SBATCH --bogus
# SBATCH --bogus
srun ./app
# site: unknown
