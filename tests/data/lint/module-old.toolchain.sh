#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load TensorFlow/2.11.0-foss-2022a
srun ./app
# site: unknown
# expect: 4 module-old
