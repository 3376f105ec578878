#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
accelerate launch --num_processes 4 \
  --learning_rate 0.1 train.py
deepspeed --num_gpus 4 --deepspeed train.py
# site: unknown
# expect: 5 launcher-option-unknown
# expect: 6 launcher-option-unknown
