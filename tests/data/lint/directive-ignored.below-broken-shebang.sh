!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app
#SBATCH --mem=4G
# site: unknown
# expect: 1 shebang-missing
# expect: 5 directive-ignored
