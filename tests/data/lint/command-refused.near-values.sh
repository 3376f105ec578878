#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
X=1 Y=2 ./run
IFS= read -r line < list.txt
LC_ALL=C sort names.txt
CUDA_VISIBLE_DEVICES=0,1 python train.py
N=$((SLURM_NNODES * 4))
OUT="my results"
ARGS="--lr 0.1"
ARGS=--verbose python train.py
OPTS=-O2 make
KEY=abc==
export A=1 B=2
export -f my-func
export A="x y-z w"
export LIST="a.b=1 c"
export NAME=$A/$B
export $NAME
export PATH=$PATH:/opt/bin
export PATH="/opt/bin:${PATH}"
export PATH=/opt/bin:$OLD_PATH
PATH=/opt/bin:/usr/bin:/bin
PATH=/opt/bin python train.py
export PATH=$(getconf PATH)
export MYPATH=/opt/bin
export MANPATH=/opt/man:$MANPATH
export LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH
export PYTHONPATH=$HOME/src:~/other
DEST=~/data
export LD_LIBRARY_PATH=~/lib:$LD_LIBRARY_PATH
srun python train.py
srun ./app
# site: unknown
