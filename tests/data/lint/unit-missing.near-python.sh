#!/bin/bash
#SBATCH --time=08:00:00
#SBATCH --mem=100
python3 count_words.py
# site: unknown
