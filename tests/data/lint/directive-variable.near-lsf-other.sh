#!/bin/bash
#BSUB -n 1
#BSUB -E "mkdir $HOME/x"
#BSUB -cwd $HOME/run
./app
# site: unknown
