#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
read -ra PARTS <<< "a b"
folder_of[${PARTS[1]}]=${PARTS[0]}
srun ./app "${folders_of[b]}"
# site: unknown
# expect: 6 variable-undefined
