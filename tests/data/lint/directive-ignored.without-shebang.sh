module load app
#SBATCH --nodes=1
srun ./app
# site: unknown
# expect: 1 shebang-missing
# expect: 2 directive-ignored
