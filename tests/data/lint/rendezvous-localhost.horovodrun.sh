#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
horovodrun -np 8 -H localhost:8 python train.py
# site: unknown
# expect: 4 rendezvous-localhost
