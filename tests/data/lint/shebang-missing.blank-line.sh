
#!/bin/bash
#SBATCH --nodes=2 --time=10
srun ./app
# site: unknown
# expect: 1 shebang-missing
