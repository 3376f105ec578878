#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -e
cat > conf.xml <<EOF
<model>
</model>
EOF
srun ./app
# site: unknown
