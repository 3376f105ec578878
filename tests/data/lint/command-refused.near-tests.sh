#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ "$A" = ge ]; then echo; fi
if [ "$A" = "x >= y" ]; then echo; fi
if [[ $A > 5 && $B -lt 3 ]]; then echo; fi
if [ ! -d out ]; then mkdir out; fi
if [ "$A" -ge "$B" ]; then echo; fi
if [ $# -lt 1 ]; then echo; fi
if [[ "$A" == "a b" ]]; then echo; fi
if [ -z "$A" -a -n "$B" ]; then echo; fi
if [ "$VERSION" = 1.5 ]; then echo; fi
if (( A >= 5 )); then echo; fi
if test "$A" = b; then echo; fi
$CMD --x = 1
"$PYTHON" train.py
$LAUNCH -eq
for i in $(seq 1 10); do python train.py --seed $i; done
for i in {1..10}; do python train.py --seed $i; done
for f in 1..10.txt; do python train.py $f; done
for ((i=0; i<3; i++)); do echo $i; done
X=$((10 / 2))
Y=$(echo "1.5 * 2" | bc)
Z=$(awk 'BEGIN { print 1.5*2 }')
W=$(python -c 'print($((1.5)))')
f() { local X=1; return 0; }
SEEDS=(1 2 3)
NAMES=("a, b" "c, d")
SETS=({1,2} {3,4})
python train.py --seed ${SEEDS[0]}
srun ./app
# site: unknown
# expect: 15 variable-undefined
# expect: 16 variable-undefined
# expect: 17 variable-undefined
