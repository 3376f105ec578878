#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat > watch.sh <<'EOF'
tail -f app.log &
EOF
# tail -f app.log &
./app &
wait
# site: unknown
