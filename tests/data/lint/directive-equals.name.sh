#!/bin/bash
#SBATCH -J=training -p=gpu
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-equals
