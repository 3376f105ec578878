#!/bin/bash
#SBATCH --nodes=2
srun ./app
# site: unknown
# expect: 3 line-endings
