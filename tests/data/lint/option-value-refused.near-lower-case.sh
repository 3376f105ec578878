#!/bin/bash
#SBATCH --time=10 --mail-type=begin,time_limit_80
srun ./app
# site: unknown
