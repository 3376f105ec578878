#!/bin/bash
#BSUB -W 01:00
#BSUB -env "all, CASE=1, MESH"
./app "$CASE" "$MESH"
# site: unknown
