#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export EASYBUILD_PREFIX=/project/me/eb
module use $EASYBUILD_PREFIX/modules/all
module load Horovod/0.28.1-foss-2022a
srun ./app
# site: unknown
# expect: 6 module-old
