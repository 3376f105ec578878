#!/bin/bash
#SBATCH --error=/dev/null
srun ./app
# site: unknown
# expect: 2 stderr-discarded
