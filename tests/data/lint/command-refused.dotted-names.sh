#!/bin/bash
#SBATCH --nodes=1 --time=10
module load gcc
my.path=/scratch/me
train.py = /scratch/me/train.py
if [ -d data ]; then run.name="a b"; fi
Model.file=net.pt
learning-rate = 0.1
my-var="a b"
my-path=$(ls -d /scratch/me/x)
srun ./app
export out.dir=/scratch/me
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 12 command-refused
