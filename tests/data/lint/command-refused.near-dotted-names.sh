#!/bin/bash
#SBATCH --nodes=1 --time=10
env a.b=c ./setup
make a.b=c
./x.y=z
srun ./app --my-var=5 --data.path=/x model.name=net
srun python train.py lr-rate=5 \
  data.path=/x
case $1 in
  a.b=c) echo first ;;
esac
PAIRS=(a.b=c
  d-e=f)
compare.sh == 1
cat > conf <<EOF
my.path=/x
my-path=/x
name.x = 5
EOF
echo "
my.path = /x
"
# site: unknown
