#!/bin/bash
#SBATCH --nodes=2 --time=10 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8
srun bash <<'EOF'
torchrun --nproc_per_node=4 t.py
EOF
# site: unknown
# expect: 3 torchrun-one-node
