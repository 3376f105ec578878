#!/bin/bash
#SBATCH -–ntasks=4
#SBATCH --—nodes=2
#SBATCH −p gpu
srun ./app
# site: unknown
# expect: 2 directive-stray-word
# expect: 3 directive-stray-word
# expect: 4 directive-stray-word
