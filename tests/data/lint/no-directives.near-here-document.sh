#!/bin/bash
sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=$1
#SBATCH --time=01:00:00
srun ./app
EOF
# site: unknown
