#!/bin/bash
#SBATCH --nodes=1 --time=10
python a.py &
sleep 1h
# site: unknown
