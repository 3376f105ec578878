#!/bin/bash
#SBATCH --acount=project_46YXXXXXX --time=10
srun ./app
# site: unknown
# expect: 2 directive-unknown
# expect: 2 placeholder
