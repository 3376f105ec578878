#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
#SBATCH -c 7
srun --cpu-bind=mask_cpu:0x7e000000000000,0x7e00000000000000,0x7e0000,0x7e000000,0x7e,0x7e00,0x7e00000000,0x7e0000000000 ./app
# site: lumi-g
# expect: 9 cpus-per-task-differs
