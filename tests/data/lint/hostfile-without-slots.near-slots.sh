#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
scontrol show hostnames | sed 's/$/ slots=4/' > hosts
deepspeed --hostfile hosts train.py
# site: unknown
