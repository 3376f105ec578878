#!/bin/bash
#BSUB -W 1:00
#BSUB -R "select[hosts>1] span[ptile='!']"
./app
# site: unknown
