#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --time-min=30
#SBATCH --begin=now+1hour
#SBATCH --deadline=2027-12-31T10:00
#SBATCH --signal=SIGXCPU@60
#SBATCH --dependency=afterok:12_3:13,afterany:14+5?singleton
#SBATCH --cpu-freq=2.4GHz-2600000:Performance
#SBATCH --gpu-freq=medium,memory=high
#SBATCH --acctg-freq=task=30,energy=10
#SBATCH --extra-node-info=*:8
#SBATCH --constraint=[(a100&big)|h100]
#SBATCH --delay-boot=00:10:00
#SBATCH --no-kill=off
#SBATCH --open-mode=apend
#SBATCH --verbose
./app
# site: unknown
