#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
ls My\ 
# a comment \ 
# - and its next line
cat > notes <<EOF
text \ 
- a list
EOF
srun python train.py
# site: unknown
