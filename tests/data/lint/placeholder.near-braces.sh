#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
{ echo a; echo b; } > both.log
find . -name '*.txt' -exec wc -l {} +
srun ./app {a,b}.txt {name}.txt
# site: unknown
