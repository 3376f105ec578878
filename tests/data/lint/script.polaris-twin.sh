#!/bin/bash -l
#PBS -N train
#PBS -A MyProject
#PBS -l select=2:ncpus=64:ngpus=4:system=polaris
#PBS -l walltime=01:00:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
#PBS -q debug
set -o pipefail
cd "$PBS_O_WORKDIR" || exit 1
module use /soft/modulefiles; module load conda; conda activate base
NNODES=$(wc -l < "$PBS_NODEFILE")
NRANKS=$((NNODES * 4))
export MASTER_PORT=$((10000 + ${PBS_JOBID%%.*} % 10000))
mpiexec -n "$NRANKS" -ppn 4 --cpu-bind list:24-31:16-23:8-15:0-7 --env OMP_NUM_THREADS=8 \
  python train.py 2>&1 | tee train.log
echo "ended with $?"
# site: polaris
