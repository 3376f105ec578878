#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --gpus-per-ta=1 --container-image=a.sqsh --ear=on ./app
torchrun --standalone --nproc-per-node=4 --log_dir logs train.py --epochs 40
torchrun $OPTIONS --epochs 40
accelerate launch --use_fsdp --fsdp_version 2 --num_processes=4 train.py --lr 0.1
deepspeed --hostfile hosts --no_ssh --node_rank 0 train.py --deepspeed
# site: unknown
# expect: 6 variable-undefined
