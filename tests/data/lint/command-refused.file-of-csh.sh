#!/bin/bash
#SBATCH --ntasks=1
source '/opt/app 2/setup.csh'
source ~/.cshrc
srun ./app
# site: unknown
# expect: 3 command-refused
# expect: 4 command-refused
