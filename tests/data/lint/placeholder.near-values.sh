#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --nodes=2
#SBATCH --job-name=todo_list
#SBATCH --partition=node_name_x
#SBATCH --output=queue_name_%j.out
srun --ntasks=2 ./app < input > output
# site: unknown
