#!/bin/bash
sbatch -W --mem=4G -o ~/log.txt job.sh --nodes=two
sbatch -N "$NODES" --dependency=afterok:$(sbatch --parsable first.sh) second.sh
echo sbatch -N two job.sh
# site: unknown
# expect: 3 variable-undefined
# expect: 2 command-misread
