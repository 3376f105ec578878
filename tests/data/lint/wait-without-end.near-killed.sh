#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
vmstat 5 > vm.log &
MON=$!
./app
kill $MON
wait
# site: unknown
