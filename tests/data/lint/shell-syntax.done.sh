#!/bin/bash
#SBATCH --time=01:00:00
python train.py
done
# site: unknown
# expect: 4 shell-syntax
