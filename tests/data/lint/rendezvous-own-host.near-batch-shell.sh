#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export MASTER_ADDR=$(hostname)
srun bash -c "MASTER_PORT=$((20000 + RANDOM % 100)) python train.py"
srun bash <<RANK
export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + RANDOM % 100))
python train.py
RANK
srun --ntasks=2 --ntasks-per-node=1 tee env.sh <<'LATER'
MASTER_ADDR=$(hostname)
LATER
# site: unknown
