#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun -N 2 --ntasks-per-node 1 tar --use-compress-program=pigz -xf env.tar.gz -C /mnt/bb/env
srun --ntasks=1 wget https://example.org/data.h5
srun bash -c 'wget https://example.org/part$SLURM_PROCID.h5'
srun tar czf results.tar.gz results
srun ./app
# site: unknown
