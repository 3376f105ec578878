#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
echo the first run (again) is over
# site: unknown
# expect: 4 shell-syntax
