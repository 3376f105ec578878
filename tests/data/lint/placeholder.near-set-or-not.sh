#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ -n "${DATA+xxx}" ] && [ -n "${LIST[*]:+xxx}" ]; then cd "$DATA" || exit; fi
srun ./app
# site: unknown
