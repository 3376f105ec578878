#!/bin/bash
#BSUB -o a.%J
#BSUB -u me@example.org
#BSUB -Ne
#BSUB -W 1:00
./app
# site: unknown
