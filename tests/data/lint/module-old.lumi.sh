#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load LUMI/22.08 partition/G
srun ./app
# site: unknown
# expect: 4 module-old
