#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvidia-smi --query-gpu=utilization.gpu --format=csv -l 30 > gpu.csv &
srun ./app &
wait
exit 0
# site: unknown
# expect: 5 status-lost
# expect: 6 wait-without-end
