#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
setenv() { export "$1=$2"; }
setenv OMP_NUM_THREADS 4
log() { echo "$@"; }
log "first part –done" "see “the log”"
singularity exec --overlay overlay.img --nv image.sif python train.py
srun singularity exec --overlay=overlay.img --nv image.sif python train.py
bash bin/activate_all.sh
# site: unknown
