#!/bin/bash
#BSUB -u me@example.org
#BSUB -W 1:00
./app
# site: unknown
