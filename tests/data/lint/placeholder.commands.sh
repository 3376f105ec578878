#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
# the program is in /path/to/bin
echo "put the data into /path/to/data"
source "/path/to/env/bin/activate"
export WORK_FOLDER="/scratch/<username>/run"
srun python YOUR_SCRIPT.py
# site: unknown
# expect: 6 placeholder
