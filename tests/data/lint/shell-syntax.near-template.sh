#!/bin/bash
#SBATCH --time=01:00:00
python train.py
kill £(< gpu.pid)
# site: unknown
# expect: 3 status-lost
