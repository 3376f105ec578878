#!/bin/bash
#SBATCH --nodes=1 --time=10
PROGRAM=./train
# site: unknown
# expect: 3 nothing-started
