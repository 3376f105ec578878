#!/bin/bash
cat > notes.txt <<EOF
#SBATCH --nodes=2
EOF
./app
# site: unknown
# expect: - no-directives
