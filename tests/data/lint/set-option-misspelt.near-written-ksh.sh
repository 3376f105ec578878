#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat > ranks.ksh << EOF
#!/bin/ksh
set -A first 0 8 16
./app \${first[1]}
EOF
srun ksh ranks.ksh
# site: unknown
