#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
<<<<<<< HEAD
srun ./app
# site: unknown
# expect: 4 shell-syntax
