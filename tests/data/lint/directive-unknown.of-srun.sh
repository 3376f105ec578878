#!/bin/bash
#SBATCH --cpu-bind=cores
srun ./app
# site: unknown
# expect: 2 directive-unknown
