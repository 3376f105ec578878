#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
jsrun -n 8 ./app
# site: unknown
# expect: 4 launcher-foreign
