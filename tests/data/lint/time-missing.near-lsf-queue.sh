#!/bin/bash
#BSUB -q long
#BSUB -n 4
./app
# site: unknown
