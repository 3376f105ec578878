#!/bin/bash
#SBATCH --nodes=2
srun ./app
# site: unknown
# expect: 1 line-endings
