#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cd /admin/home/jdoe/train
srun ./app
# site: unknown
# expect: 4 personal-path
