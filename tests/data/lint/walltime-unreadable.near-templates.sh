#!/bin/bash
#SBATCH -t __walltime__
srun ./app
# site: unknown
# expect: 2 placeholder
