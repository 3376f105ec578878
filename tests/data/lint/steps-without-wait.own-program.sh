#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
for i in 1 2 3; do
    ./simulate $i &
done
# site: unknown
# expect: 5 steps-without-wait
