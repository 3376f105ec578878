#!/bin/bash
#SBATCH --signal=B:TERM@00:30
#SBATCH --workdir=/data
#SBATCH --mem=4gigs
#SBATCH --time=01:00:00
./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
# expect: 4 option-value-refused
