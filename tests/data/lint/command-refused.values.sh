#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
CUDA_VISIBLE_DEVICES=0, 1
SEEDS=[1 2 3]
N=$SLURM_NNODES * 4
ARGS=--lr 0.1
SUM=$(1+2)
HALF=$((3 * 1.5))
let HALF=1.5*2
export OMP_NUM_THREADS=SLURM_CPUS_ON_NODE
export MASTER_ADDR=HOSTNAME
export PATH=/opt/x/bin
PATH="$HOME/bin"
export PATH=PATH:/opt/x/bin
export LD_LIBRARY_PATH=/opt/lib:LD_LIBRARY_PATH
export PYTHONPATH="~/src:$PYTHONPATH"
cd $(SLURM_SUBMIT_DIR)
OUT=/scratch/project
mkdir -p $(OUT)/run
echo ${OUT.name}
echo ${ OUT }
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 11 command-refused
# expect: 12 command-refused
# expect: 13 command-refused
# expect: 14 command-refused
# expect: 15 command-refused
# expect: 16 command-refused
# expect: 17 command-refused
# expect: 18 command-refused
# expect: 20 command-refused
# expect: 21 command-refused
