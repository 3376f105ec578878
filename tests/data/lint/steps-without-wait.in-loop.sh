#!/bin/bash
#SBATCH --nodes=1 --time=10
for i in 1 2 3; do
    python a.py $i &
    sleep 1
done
# site: unknown
# expect: 4 steps-without-wait
