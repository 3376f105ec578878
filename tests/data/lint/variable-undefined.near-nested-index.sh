#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
declare -A folder_of
read -ra PARTS <<< "a b"
folder_of[${PARTS[1]}]=${PARTS[0]}
srun ./app "${folder_of[b]}"
# site: unknown
