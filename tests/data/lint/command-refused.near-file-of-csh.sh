#!/bin/tcsh
#SBATCH --ntasks=1
source /opt/app/setup.csh
source ~/.cshrc
source /opt/env/bin/activate.csh
srun ./app
# site: unknown
