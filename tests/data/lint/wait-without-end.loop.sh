#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
while true; do
  free -m >> memory.log
  sleep 10
done &
./a > a.log &
./b > b.log &
wait
# site: unknown
# expect: 10 wait-without-end
