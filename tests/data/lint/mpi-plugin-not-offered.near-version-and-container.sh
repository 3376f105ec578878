#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun --mpi=pmi2 singularity exec image.sif ./app
srun --mpi=cray_shasta ./app
# site: lumi-g
