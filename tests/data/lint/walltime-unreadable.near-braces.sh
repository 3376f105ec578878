#!/bin/bash
#SBATCH -t {walltime}
srun ./app
# site: unknown
# expect: 2 placeholder
