#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun hostname
cat > input.txt << EOF
steps = 3
  EOF
srun ./app input.txt
# site: unknown
# expect: 5 shell-syntax
