#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
X==5
for i in 1..10; do ./prepare $i; done
SEEDS=(1, 2, 3)
echo $ {X}
export MASTER_ADDR=$SLURM_JOB_NODELIST
export MASTER_PORT=$SLURM_JOB_ID
DATA="~/data"
sbatch next.sh --nodes=2
srun python train.py --ntasks=4
mpirun ./app -np 4
accelerate launch train.py --num_processes 4
# site: unknown
# expect: 4 command-misread
# expect: 5 command-misread
# expect: 6 command-misread
# expect: 7 command-misread
# expect: 8 command-misread
# expect: 9 command-misread
# expect: 10 command-misread
# expect: 11 command-misread
# expect: 12 command-misread
# expect: 13 command-misread
# expect: 14 command-misread
