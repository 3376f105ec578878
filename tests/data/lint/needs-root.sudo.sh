#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
sudo modprobe nvidia-uvm
./app
# site: unknown
# expect: 4 needs-root
