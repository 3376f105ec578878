#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app
cp /tmp/out/log results/
tar -C $SLURM_TMPDIR -cf all.tar .
# site: unknown
