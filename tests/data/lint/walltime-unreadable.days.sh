#!/bin/bash
#SBATCH -t 2-:30
srun ./app
# site: unknown
# expect: 2 walltime-unreadable
