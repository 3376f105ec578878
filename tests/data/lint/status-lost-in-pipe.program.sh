#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
module load caffe
./train --solver a 2>&1 | tee train.log
# site: unknown
# expect: 5 status-lost-in-pipe
