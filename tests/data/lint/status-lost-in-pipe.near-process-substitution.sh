#!/bin/bash
srun python train.py > >(tee train.log)
# site: unknown
