#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
srun --output=out-%j.txt ./app
printf '%j\n' > out.txt
./app > out-$(date +%j).txt
cat > job.sh <<'END'
#SBATCH --output=%j.out
END
# site: unknown
