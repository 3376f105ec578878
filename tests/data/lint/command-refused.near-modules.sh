#!/bin/bash
#SBATCH --time=01:00:00
module tryload gcc/12
module is_avail cuda
module erase gcc
module ad gcc/12
module autoinit bash
srun ./app
# site: unknown
