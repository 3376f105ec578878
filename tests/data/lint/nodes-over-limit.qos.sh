#!/bin/bash
#SBATCH --account=x
#SBATCH --partition=boost_usr_prod
#SBATCH --qos=boost_qos_dbg
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=00:20:00
srun ./train
# site: leonardo
# expect: 5 nodes-over-limit
