#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cd /home/$USER/train
# /home/jdoe/old
srun /users/shared/bin/app /home/username/x
# site: unknown
# expect: 6 placeholder
