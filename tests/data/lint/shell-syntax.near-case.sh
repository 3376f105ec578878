#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
case "$1"
in
    a) name=$(case x in x) echo x;; esac);;
    *) name=b;;
esac
sleep $[ ( $RANDOM % 10 ) + 1 ]
if [ -e a ]; then
    srun ./app $name
elif [ -e b ]; then
    srun ./app b
else
    srun ./app c
fi
diff <(sort a) <(sort b)
# site: unknown
