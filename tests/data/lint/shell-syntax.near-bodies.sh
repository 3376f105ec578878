#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
i=0
while true; do ((i += 1)); [[ $i == 3 ]] && break; done
if [ -f x ]; then # of the run before
  :
elif [ -f y ]; then
  [[ -f z ]]
else
  case $i in 3) ;; esac
fi
RUN=$(python - <<PY
print(1)
PY)
srun ./app "$RUN"
# site: unknown
