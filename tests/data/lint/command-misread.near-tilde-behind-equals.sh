#!/bin/bash
#SBATCH --time=01:00:00
echo --data=~/data
export DATA=~/data
OUT=~/out ./app --data ~/data
dd if=/dev/zero of=~/zeros count=1
pip install --target=~/lib numpy
make PREFIX=~/sw
if [[ "$DATA" =~ /data ]]; then ./app; fi
awk '$1=~/x/ {print}' file
python run.py "--fasta_paths=$HOME/P42212.fasta"
julia --project=~/model run.jl
srun -n 4 julia --project=~/model run.jl
jupyter lab --ServerApp.root_dir=~/work
# site: unknown
