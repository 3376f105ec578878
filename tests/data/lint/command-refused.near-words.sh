#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -e
sbatch --wrap="srun python train.py"
sbatch --wrap "srun python train.py"
sbatch --job-name="my bash job" job.sh
echo Running: torchrun train.py --nproc_per_node=4
echo python -m train.py
python3 -c "print('Please print this')"
docker run --rm image ls -it
bash -lc 'ml spider gcc'
function pyhton { python3 "$@"; }
pyhton train.py
# site: unknown
