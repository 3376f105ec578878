#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
bash -c "sleep 10"
bash -c date > when.txt 2>&1
sh -c hostname # where
RUN="sleep 10"
bash -lc "$RUN" first
echo bash -c sleep 10
bash ./run.sh -c sleep 10
srun ./app
# site: unknown
