#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
module variant
module forbid gcc
module load shell
conda activate active
conda activate deactive
source active
python -m torch.distributed.run --nproc_per_node=2 train.py
python -m package.module --path a/b.py
python train.py -m model.py
python -u train.py -m src/model
torchrun --standalone train.py -m cfg.py
torchrun --nproc_per_node 2 train.py -m x/y
torchrun --nproc_per_node=gpu -m package.train
accelerate launch -m package.train
torchrun --no-python --nproc_per_node=2 python train.py
torchrun --nproc_per_node=2 --no_python python train.py
accelerate launch --num_processes 2 train.py --nproc 3
python3 -c "print('x')"
python3 -c 'print(1)'
python3 -c "x = 'a'; print(x)"
python launch.py torchrun
python scripts/torchrun.py
python srun.py
torchrun --nproc_per_node=$N train.py --nodes 3
torchrun --nproc-per-node=auto train.py
accelerate launch --config_file c.yaml train.py --num_epochs 3
accelerate config default
accelerate env
accelerate test
deepspeed --num_gpus=2 train.py --deepspeed_config ds.json
srun --ntasks=2 --cpu-bind=cores python train.py --nodes 3
srun -n 2 ./app -n=4
srun -N2 -n4 --gpus-per-task 1 python train.py --partition x
srun -- python train.py
srun --gpus=2 --cpus-per-task=4 ./app
srun --mem-per-cpu=2G ./app
mpirun -np 4 ./app -np 8
mpirun -n $((N*4)) ./app
mpirun -x OMP_NUM_THREADS -np 4 ./app
mpirun -genv OMP_NUM_THREADS 4 -n 4 ./app
srun --export=ALL,SLURM_X=1 ./app
srun -n "$SLURM_NTASKS" ./app
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export RUN_ID=SLURM_JOB
export NAME=SLURM_JOB_ID_x
sbatch --parsable job.sh
sbatch job.sh --epochs 3
sbatch --wrap "python train.py"
sbatch --wrap="python train.py --gres=x"
sbatch --nodes=2 job.sh
J=$(sbatch --parsable a.sh); sbatch --dependency=afterok:$J b.sh
sbatch --dependency=afterok:$(sbatch --parsable a.sh) b.sh
python train.py --title "a – b" --q "it’s"
echo – fine
echo “x”
python train.py l’eau
alias m=module
HELLO
srun python train.py
# site: unknown
# expect: 7 conda-not-set-up
# expect: 45 scheduler-variable-unset
# expect: 46 scheduler-variable-unset
