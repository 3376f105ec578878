#!/bin/bash
#SBATCH --nodes=1 --time=10
python a.py > log &
tail -f --pid=$! log
# site: unknown
