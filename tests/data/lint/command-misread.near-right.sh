#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=1
cd ~/"my runs" || exit
if [ "$N" = 1 ] && [[ $N > 0 ]] && [ -n "$N" ] && [ "$N" \> 0 ]; then srun ./app --x="~/y"; fi
for i in {1..4}; do
    srun ./app $i
done
# site: unknown
