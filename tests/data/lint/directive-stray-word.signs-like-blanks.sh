#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --nodes=1 --ntasks=2
#SBATCH --mem=4G﻿
#SBATCH --cpus-per-task=4 # four
srun ./app
# site: unknown
# expect: 3 directive-stray-word
# expect: 4 directive-stray-word
# expect: 5 directive-stray-word
