#!/bin/bash
#SBATCH --partition=short
./app
# site: unknown
# expect: - time-missing
