#!/bin/bash
sbatch --mail-type=finished -N two job.sh
salloc --mem=4gigs ./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
