#!/bin/bash
#$ -cwd -l h_rt=1:00:00
#$ -v CASE=/data/MESH,OUT_DIR
./app "$CASE" "$OUT_DIR"
# site: unknown
