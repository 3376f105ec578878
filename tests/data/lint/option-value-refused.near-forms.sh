#!/bin/bash
#SBATCH --time=30:00
#SBATCH --gres=gpu:a100:2,craynetwork:0
#SBATCH --nodes=2-4
#SBATCH --nodelist=gpu-12-5
#SBATCH --exclude=cn12-05,r[1-2]i[0-3]n[01-18]
#SBATCH --dependency=afterok:12:13,afterany:14
#SBATCH --output=/dev/null
#SBATCH --account=
srun --gpus-per-node=1g.10gb:2 ./app
# site: unknown
