#!/bin/bash
#SBATCH --nodes=1 --gpus=4 --time=10
srun -n 4 --gpus-per-task=1 --cpus-per-task=8 bash -c "export ROCR_VISIBLE_DEVICES=\${SLURM_LOCALID}
exec ./app"
# site: unknown
# expect: 3 gpu-number-of-node
