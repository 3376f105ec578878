#!/bin/bash
#SBATCH --account=project_465000000 --partition=standard-g
#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=7
#SBATCH --time=00:30:00
#SBATCH --exclusive
set -euo pipefail
module load LUMI/24.03 partition/G
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
fe=fe
MYMASKS="0x${fe}000000000000,0x${fe}00000000000000"
MYMASKS="${MYMASKS},0x${fe}0000,0x${fe}000000,0x${fe},0x${fe}00,0x${fe}00000000,0x${fe}0000000000"
srun --cpu-bind=mask_cpu:$MYMASKS \
  bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; exec python -u train.py' > train.log 2>&1
# site: lumi-g
