#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun -n1 export X=1
srun module load cuda
srun X=1 ./app
module cuda/12.1
moduel load cuda
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
