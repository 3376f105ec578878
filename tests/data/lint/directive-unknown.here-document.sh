#!/bin/bash
HEADER=$1
for nodes in 1 2; do
    sbatch <<EOF
#!/bin/bash
#SBATCH --nodse=$nodes
$HEADER
#SBATCH --ntask-per-nodes=4
#SBATCH --time=01:00:00
srun ./app
EOF
done
# site: unknown
# expect: 8 directive-unknown
