#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
scontrol show hostnames "$SLURM_JOB_NODELIST" > hosts
deepspeed --hostfile hosts train.py
# site: unknown
# expect: 4 hostfile-without-slots
