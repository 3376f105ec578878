#!/bin/bash
OPTIONS=$1 HEADER=$2
for nodes in 1 2; do
    sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=$nodes $OPTIONS
#SBATCH --time=$(time_of $nodes)
#SBATCH --output=run-$nodes.out
$HEADER
#SBATCH --mem=4G
srun ./app
EOF
done
cat > notes.txt <<EOF
#SBATCH --nodes=two
EOF
cat > job.py <<EOF
#!/usr/bin/env python3
#SBATCH --nodes=two
EOF
# site: unknown
