#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -e
A=0
A=5
((A++))
B=0
while read -r _; do ((++B)); done < list
((B++))
C=0
cat > run.sh <<'EOF'
((C++))
EOF
D=0
ls | while read -r _; do
  ((D++))
done | sort
F=0
true ||
((F++))
srun ./app
# site: unknown
