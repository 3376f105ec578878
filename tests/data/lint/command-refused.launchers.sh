#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
python -m train.py
python3 -m src/train --lr 1
torchrun --nproc_per_node=2 -m train.py
python3 -c "print 'x'"
torchrun --nproc_per_node=2 python train.py
accelerate launch --num_processes 2 python train.py
python torchrun --nproc_per_node=2 train.py
torchrun train.py --nproc_per_node=2
torchrun --nproc_per_node train.py
torchrun --nproc_per_node=two train.py
torchrun -nproc_per_node=2 train.py
accelerate train.py
srun -n=4 ./app
mpirun np 4 ./app
srun - n 4 ./app
srun --gpu 1 ./app
srun --cpus=2 ./app
mpirun -np SLURM_NTASKS ./app
mpirun -np $SLURM_NNODES*4 ./app
sbatch python train.py
sbatch --wrap python train.py
sbatch --dependency=afterok:$(sbatch first.sh) second.sh
docker run -it image python train.py
tmux new -s train
python train.py – epochs 3
python train.py -–epochs 3
python train.py --name ‘big’
srun ./app
# site: unknown
# expect: 6 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 11 command-refused
# expect: 12 command-refused
# expect: 13 command-refused
# expect: 14 command-refused
# expect: 15 command-refused
# expect: 16 command-refused
# expect: 17 command-refused
# expect: 18 command-refused
# expect: 19 command-refused
# expect: 20 command-refused
# expect: 21 command-refused
# expect: 22 command-refused
# expect: 23 command-refused
# expect: 24 command-refused
# expect: 25 command-refused
# expect: 26 command-refused
# expect: 27 command-refused
# expect: 28 command-refused
# expect: 29 command-refused
# expect: 30 command-refused
# expect: 31 command-refused
# expect: 32 command-refused
