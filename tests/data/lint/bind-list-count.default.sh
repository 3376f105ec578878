#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=8
#SBATCH --exclusive
#SBATCH --time=01:00:00
MAP="map_cpu:49,57,17,25"
MAP+=",1,9,33,41"
srun --cpu-bind="$MAP" ./application
# site: unknown
# expect: 7 bind-list-count
