#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nohup ./netlogo.sh --threads 8 > nl.log 2>&1 &
echo started
# site: unknown
# expect: 4 steps-without-wait
