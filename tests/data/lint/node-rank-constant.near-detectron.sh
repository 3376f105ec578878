#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
srun bash -c 'python tools/train_net.py --num-gpus 4 --num-machines 2 --machine-rank $SLURM_NODEID --dist-url tcp://$SLURM_LAUNCH_NODE_IPADDR:9000'
# site: unknown
