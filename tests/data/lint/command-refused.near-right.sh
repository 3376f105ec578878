#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
/opt/miniforge3/bin/conda run -n train python prepare.py
echo “done” – fine
set -- A=1
export OUT="a = b" RUN=first 
if [ "$RUN" = first ]; then cd "$SLURM_SUBMIT_DIR"; fi
singularity exec --nv image.sif python train.py --nv
srun ./app --title "a – b"
# site: unknown
