#!/bin/bash
#SBATCH --time=00:05:00
./workflow --dryrun --unlock
# site: unknown
