#!/bin/bash
srun python elsewhere.py
# site: unknown
