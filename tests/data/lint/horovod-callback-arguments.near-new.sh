#!/bin/bash
srun python new_callbacks.py
# site: unknown
