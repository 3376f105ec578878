#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
touch app.log
tail -f app.log &
./app > app.log
wait
# site: unknown
# expect: 7 wait-without-end
