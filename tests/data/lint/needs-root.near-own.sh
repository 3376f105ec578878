#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat /proc/sys/vm/swappiness
echo 'export A=1' >> $CONDA_PREFIX/etc/conda/activate.d/env.sh
if sudo -n true; then echo root; fi
pip install --user torch
./app
# site: unknown
