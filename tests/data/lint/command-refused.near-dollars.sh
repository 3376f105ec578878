#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
$SRUN -n 1 ./set_up
export LIBRARIES=\
/opt/a/lib:\
/opt/b/lib
echo "$$ ${!LIBRARIES} "'${$name}'
srun ./app
# site: unknown
