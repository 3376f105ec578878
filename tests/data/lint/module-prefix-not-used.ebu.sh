#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export EBU_USER_PREFIX=/project/me/eb
ml Horovod/0.28.1-foss-2022a
module load foo
srun ./app
# site: unknown
# expect: 4 module-prefix-not-used
# expect: 5 module-old
