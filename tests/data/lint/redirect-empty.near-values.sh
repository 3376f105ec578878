#!/bin/bash
#SBATCH --nodes=1 --time=10
A=
A=$1
srun ./app > $A
B=
[ -n "$1" ] && B=app.log
srun ./app > $B
C=
srun ./app > ${C:-app.log}
srun ./app > out$C
D=
srun ./app <<< $D
srun ./app > $E
F=
read F < names
srun ./app > $F
# site: unknown
