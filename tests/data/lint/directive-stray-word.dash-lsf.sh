#!/bin/bash
#BSUB –gpu "num=1"
#BSUB -n 4 –q gpu
#BSUB -–W 10
./app
# site: unknown
# expect: 2 directive-stray-word
# expect: 3 directive-stray-word
# expect: 4 directive-stray-word
