#!/bin/bash
#SBATCH --nodes=1 --time=10
TRAIN=./bin/train.sh
# site: unknown
# expect: 3 nothing-started
