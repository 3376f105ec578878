#!/bin/bash
#SBATCH --image=docker:x/y --module=gpu --volume=/a:/b
#SBATCH --ear=on --tasks=4 --cluster=c1
#xSBATCH --nothing
#SBATCH --time=01:00:00
srun ./app
# site: unknown
