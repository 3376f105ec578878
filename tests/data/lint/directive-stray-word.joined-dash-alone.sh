#!/bin/bash
#SBATCH—mem=3G
srun ./app
# site: unknown
# expect: 2 directive-stray-word
