#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --job-name=“app”
srun ./app --title "a b" --note 'c – d'
echo a b “c”
cat <<EOF
e f
EOF
srun ./app # g h
# site: unknown
