#!/bin/bash
#SBATCH --nodes=1 --time=10
python a.py > log &
PID=$!
sleep 30
tail -n 5 log
# site: unknown
# expect: 3 steps-without-wait
