#!/bin/bash
#SBATCH --time=01:00:00
module load app
srun -n 4 ./app
srun ‐n 4 ./app
export A=1
./app​
# site: unknown
# expect: 3 command-refused
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
