#!/bin/bash
#SBATCH --nodes=1 --time=10
python a.py &
while [ -n "$(jobs -r)" ]; do
    sleep 5
done
# site: unknown
