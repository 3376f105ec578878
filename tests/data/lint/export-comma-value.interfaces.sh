#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun --export=ALL,NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3 ./app
# site: lumi-g
# expect: 8 export-comma-value
