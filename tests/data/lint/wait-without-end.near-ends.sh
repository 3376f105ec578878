#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvidia-smi dmon -c 10 > gpu.log &
vmstat > vm.log &
while true; do
  [ -f stop ] && break
  sleep 10
done &
timeout 60 top -b > top.log &
./app &
wait
# site: unknown
