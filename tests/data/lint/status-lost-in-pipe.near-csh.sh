#!/bin/csh
srun ./app | tee log
# site: unknown
