#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
scl enable devtoolset-7 bash
poetry shell
singularity shell --nv image.sif
newgrp project
bash -c "export RUN=first"
bash -l
exec bash
srun ./app
# site: unknown
# expect: 4 activation-without-effect
# expect: 5 activation-without-effect
# expect: 6 activation-without-effect
# expect: 7 activation-without-effect
# expect: 8 activation-without-effect
# expect: 9 activation-without-effect
# expect: 10 activation-without-effect
