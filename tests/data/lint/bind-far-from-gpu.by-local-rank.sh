#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
srun --cpu-bind=v,mask_cpu=0xfe,0xfe00,0xfe0000,0xfe000000,0xfe00000000,0xfe0000000000,0xfe000000000000,0xfe00000000000000 ./app
# site: lumi-g
# expect: 9 bind-far-from-gpu
