#!/bin/bash
#SBATCH --output=logs/%x-%j.out
srun ./app
# site: unknown
# expect: 2 output-folder-missing
