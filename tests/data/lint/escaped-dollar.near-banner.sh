#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
RESULTS=/scratch/a
OUT=/scratch/b
echo "##   output goes to \$RESULTS and \$OUT   ##"
echo "  \$RESULTS=$RESULTS"
cat <<EOF
  \$OUT: ${OUT}
EOF
echo "\$OUT is filled by the program"
srun ./app "$OUT"
# site: unknown
