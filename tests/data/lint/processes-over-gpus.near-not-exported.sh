#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
NP=8
srun -c8 bash -c 'torchrun --standalone --nproc_per_node=${NP:-4} train.py'
srun -c8 bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
srun -c8 bash <<'RUN'
torchrun --standalone --nproc_per_node=$NP train.py
RUN
# site: unknown
# expect: 7 variable-not-exported
# expect: 8 variable-not-exported
# expect: 10 variable-not-exported
