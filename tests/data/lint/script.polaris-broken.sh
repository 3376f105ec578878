#!/bin/bash -l
#PBS -N train
#PBS -l select=4:ncpus=64:ngpus=8:system=polaris
#PBS -l walltime=02:00:00
#PBS -q debug
#PBS -o logs/

cd "$PBS_O_WORKDIR" || exit 1
module use /soft/modulefiles; module load conda; conda activate base
NNODES=$(wc -l < "$PBS_NODEFILE")
NRANKS=$((NNODES * 4))
export MASTER_PORT=50000
mpiexec -n "$NRANKS" -ppn 4 --cpu-bind list:24-31:16-23:8-15:8-15 --env OMP_NUM_THREADS=8 \
  python train.py 2>&1 | tee train.log
echo "ended with $?"
# site: polaris
# expect: - directive-missing
# expect: 3 gpus-over-node
# expect: 3 nodes-over-limit
# expect: 4 walltime-over-limit
# expect: 6 output-folder-missing
# expect: 12 master-port-fixed
# expect: 13 bind-far-from-gpu
# expect: 13 bind-shared-cores
# expect: 13 status-lost-in-pipe
