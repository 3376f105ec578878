#!/bin/bash
#BSUB -o a.%J.%I.out
#BSUB -e 50%and.err
#BSUB -W 1:00
./app
# site: unknown
