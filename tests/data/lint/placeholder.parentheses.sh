#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun gmx pdb2gmx -f (filename).pdb -o (result).gro -water spce
srun gmx solvate -cp box.gro -o (filename)solv.gro
# site: unknown
# expect: 4 placeholder
