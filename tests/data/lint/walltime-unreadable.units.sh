#!/bin/bash
#SBATCH --time=2h
srun ./app
# site: unknown
# expect: 2 walltime-unreadable
