#!/bin/bash
#SBATCH --time=01:00:00
srun --container-image=pt.sqsh --export="RANKS=8,NCCL_DEBUG=WARN" bash -c true
# site: unknown
# expect: 3 export-without-all
