#!/bin/bash
#SBATCH --account=def-jsmith
#SBATCH --job-name=abc123
#SBATCH --nodes=1
#SBATCH --time=01:00:00
go test ./... ../../app
srun ./app
# site: unknown
