#!/bin/bash
#SBATCH -C gpu
#SBATCH -A m1234
#SBATCH -q regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node 4
#SBATCH --cpus-per-task 32
#SBATCH --gpus-per-node 4
#SBATCH --time=01:00:00
#SBATCH --image=nersc/pytorch:25.06.01
#SBATCH --module=gpu,nccl-plugin
#SBATCH -o %x-%j.out
export FI_MR_CACHE_MONITOR=userfaultfd
export MASTER_ADDR=$(hostname) MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export CUDA_VISIBLE_DEVICES=3,2,1,0  # as Slurm's cores of the ranks
srun -u shifter bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  python train.py
'
# Documented by NERSC's tutorial for SC25 (github.com/NERSC/sc25-dl-tutorial): hardware threads are counted, GPUs turned round.
