#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
/opt/miniforge3/bin/conda activate train
cd PBS_O_WORKDIR
source setup.csh
singularity exec image.sif --nv python train.py
srun –n 4 ./app
export MODE=“fast”
srun ./app
# site: unknown
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
