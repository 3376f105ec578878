#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun python train.py --world-size 16
srun -n 4 python test.py --world-size=4
srun python train.py --world-size $SLURM_NTASKS
# site: unknown
