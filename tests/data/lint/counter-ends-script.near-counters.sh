#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=0
((N++))
set -e
i=1
((i++))
j=0
((j++)) || true
k=0
((++k))
l=0
for ((l=0; l<3; l++)); do echo "$l"; done
if ((j++)); then echo; fi
srun ./app
# site: unknown
