#!/bin/bash
#SBATCH --job-name=dry-run-transfer
#SBATCH --time=00:05:00
snakemake -R all --dry-run
# site: unknown
