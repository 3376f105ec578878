#!/bin/bash
#SBATCH nodes=2
srun ./app
# site: unknown
# expect: 2 directive-stray-word
