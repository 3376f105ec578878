#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
bash run.sh
bash -l run.sh
bash <<END
echo x
END
exec python train.py
cat cmds | bash
scl enable devtoolset-7 'python train.py'
scl enable devtoolset-7 bash <<END
python x.py
END
singularity exec image.sif shell script
singularity exec image.sif bash run.sh
apptainer run image.sif
docker run --rm image python train.py
docker run -i image python train.py
tmux new -d -s train
screen -dmS train python train.py
poetry run python shell.py
srun ./app
# site: unknown
