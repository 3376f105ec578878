#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@180
trap 'cp state.bin save/' USR1
./heatbath --steps 5000
# site: unknown
# expect: 6 signal-not-trapped
