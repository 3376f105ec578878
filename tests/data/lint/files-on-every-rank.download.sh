#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun bash -c 'wget https://example.org/data.h5 && unzip data.zip'
srun ./app
# site: unknown
# expect: 5 files-on-every-rank
