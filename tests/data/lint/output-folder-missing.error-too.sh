#!/bin/bash
#SBATCH -e errors/%j.err
srun ./app
# site: unknown
# expect: 2 output-folder-missing
