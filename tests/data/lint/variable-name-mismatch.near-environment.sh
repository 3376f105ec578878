#!/bin/bash
MY_HOME=/scratch/me
srun python train.py --home "$HOME" "$MY_HOME"
# site: unknown
