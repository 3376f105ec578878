#!/bin/bash
#SBATCH --time=01:00:00
python run.py --fasta_paths=~/P42212.fasta
cmake -DCMAKE_INSTALL_PREFIX=~/sw .
python fit.py data.path=~/data lr=1
srun --chdir=~/run ./app
# site: unknown
# expect: 3 command-misread
# expect: 4 command-misread
# expect: 5 command-misread
# expect: 6 command-misread
