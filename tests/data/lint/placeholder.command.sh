#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --unbuffered <application>
# site: unknown
# expect: 4 placeholder
