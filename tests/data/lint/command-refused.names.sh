#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
X:=5
my-var=1
2nd=results
export MY-VAR=1
export A.B=1
export NCCL_DEBUG:INFO
export PATH $HOME/bin:$PATH
for $i in 1 2 3; do echo "$i"; done
local LIMIT=3
SBATCH --nodes=2
unsetenv LIMIT
limit stacksize unlimited
sorce venv/bin/activate
pyhton train.py
srun pyton train.py
exprot RUN=first
Module load cuda
conda active train
conda deactive
source actvate train
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 11 command-refused
# expect: 12 command-refused
# expect: 13 command-refused
# expect: 14 command-refused
# expect: 15 command-refused
# expect: 16 command-refused
# expect: 17 command-refused
# expect: 18 command-refused
# expect: 19 command-refused
# expect: 20 command-refused
# expect: 21 command-refused
# expect: 22 command-refused
# expect: 23 command-refused
