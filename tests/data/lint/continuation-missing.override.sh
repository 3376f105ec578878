#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py \
    trainer.max_epochs=3
    data.max_length=2048 \
    optim.lr=0.1
# site: unknown
# expect: 6 continuation-missing
