#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --time-min=30min
#SBATCH --begin=now+1h
#SBATCH --signal=SEGV@60
#SBATCH --dependency=afterok:12:last
#SBATCH --cpu-freq=max
#SBATCH --gpu-freq=1410MHz
#SBATCH --acctg-freq=gpu=30
#SBATCH --extra-node-info=two:8
#SBATCH --constraint=[a100|h100
#SBATCH --delay-boot=10min
#SBATCH --no-kill=on
#SBATCH --verbose=1
./app
# site: unknown
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
# expect: 6 option-value-refused
# expect: 7 option-value-refused
# expect: 8 option-value-refused
# expect: 9 option-value-refused
# expect: 10 option-value-refused
# expect: 11 option-value-refused
# expect: 12 option-value-refused
# expect: 13 option-value-refused
# expect: 14 option-value-refused
