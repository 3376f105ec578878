#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat <<EOF
  --lr 0.1
EOF
export NCCL_DEBUG=WARN \
  NCCL_IB_SL=0 \
  NCCL_ALGO=Ring
  time -p srun \
    --nodes=1 \
    python train.py \
    --epochs 40
# site: unknown
