#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
scontrol show hostnames > ./hosts.txt
deepspeed --hostfile=./hosts.txt train.py
# site: unknown
# expect: 4 hostfile-without-slots
