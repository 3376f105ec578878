#!/bin/bash
{
  srun python train.py
} |& tee train.log
# site: unknown
# expect: 3 status-lost-in-pipe
