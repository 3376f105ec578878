#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
./monitor.sh &
./simulate
# site: unknown
