#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --time=00:30:00
MASKS=0xff000000000000,0xff00000000000000
OPTIONS="--cpu-bind=mask_cpu:$MASKS"
srun $OPTIONS ./app
# site: lumi-g
# expect: 8 bind-reserved-cores
