#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
NP=2
export M=2 EMPTY=
declare -x K=2
NP=4 srun -c8 bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
srun -c8 --export=ALL,NP=$NP bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
srun -c8 env NP=$NP bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
srun -c8 bash -c "torchrun --standalone --nproc_per_node=$NP train.py"
srun -c8 bash -c 'torchrun --standalone --nproc_per_node=$M train.py $EMPTY$K'
srun -c8 bash -c 'q=1; ./app $q; for f in a b; do ./app $f; done'
PATH=$PWD/bin:$PATH
srun -c8 bash -c 'PATH=/opt:$PATH ./app $SLURM_PROCID'
srun -c8 bash <<RUN
torchrun --standalone --nproc_per_node=$NP train.py
RUN
# site: unknown
