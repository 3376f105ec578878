#!/bin/bash -e
#SBATCH --job-name=test_gpu_hvd
#SBATCH --account=NNxxxxx
#SBATCH --time=00:30:00
#SBATCH --partition=to-be-specified
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus=8
#SBATCH --gpus-per-node=4
#SBATCH -o %x-%j.out

N=$SLURM_JOB_NUM_NODES
Ntasks=$SLURM_NTASKS
Ntasks_per_node=$((Ntasks / N))
#$SLURM_TASKS_PER_NODE
echo "--nbr of nodes:" $N
echo "--total nbr of gpus:" $Ntasks
echo "--nbr of gpus per nodes :" $Ntasks_per_node
# Set the environment variable EBU_USER_PREFIX
export EBU_USER_PREFIX=/project/NNxxxx/EasyBuild
#Load Horovod module
module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0
# Run training using srun with multiple GPUs
srun --mpi=pmix python train_mnist.py
# site: unknown
# expect: 5 placeholder
# expect: 8 gpus-conflict
# expect: 22 module-old
