#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
MASK="0xfe,0xfe,0xfe0000,0xfe000000,0xfe000000000000,0xfe00000000000000,0xfe00000000,0xfe0000000000"
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
srun --cpu-bind=mask_cpu:$MYMASKS ./app
# site: lumi-g
# expect: 10 bind-far-from-gpu
# expect: 10 bind-shared-cores
# expect: 10 variable-name-mismatch
