#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export EASYBUILD_PREFIX=/project/me/eb
module load Horovod/0.28.1-foss-2022a
srun ./app
# site: unknown
# expect: 4 module-prefix-not-used
# expect: 5 module-old
