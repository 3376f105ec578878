#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export http_proxy=http://proxy:80
export HTTP_PROXY=$HTTP_PROXY
./app
# site: unknown
