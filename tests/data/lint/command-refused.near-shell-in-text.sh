#!/bin/bash
#$ -cwd
cat > other.sh <<'EOF'
#$ -S /bin/csh
EOF
source setup.sh
export A=1
./app
# site: unknown
