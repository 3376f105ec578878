#!/bin/bash
#SBATCH -o runs/%j/out.txt
srun ./app
# site: unknown
# expect: 2 output-folder-missing
