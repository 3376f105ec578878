#!/bin/bash
#SBATCH --nodes=1 --time=10
trap 'wait' EXIT
python a.py &
sleep 2
# site: unknown
