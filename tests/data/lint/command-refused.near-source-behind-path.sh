#!/bin/sh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
PATH=/opt/tool/bin:$PATH
. tool.sh
srun ./app
# site: unknown
