#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun bash -c "sync && echo 3 | tee /proc/sys/vm/drop_caches"
./app
# site: unknown
# expect: 4 needs-root
