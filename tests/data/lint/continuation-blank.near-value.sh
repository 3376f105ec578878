#!/bin/bash
#SBATCH --nodes=1 --time=10
A="--lr 1 \
  --x"
B="--lr 1 \ 
  --x"
C=(--lr 1 \
  --x)
D='--lr 1 \
  --x'
E="/tmp/a\ b
  --x"
echo "usage: $B" $B
srun python train.py $A "${C[@]}" "$D" $E
srun bash -c "python train.py $D"
# site: unknown
