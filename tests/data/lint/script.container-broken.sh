#!/bin/bash -e
#SBATCH --job-name=hvd_8gpu
#SBATCH --account=project_465000001
#SBATCH --time=04:15:00
#SBATCH --partition=dev-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus=8
#SBATCH --gpus-per-node=8
#SBATCH -o %x-%j.out
#SBATCH --exclusive

N=$SLURM_JOB_NUM_NODES
export LC_ALL=C
ml rocm
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
Job=$PWD
Container=/scratch/$SLURM_JOB_ACCOUNT/horovod.sif

cat > "$Job/run-me.sh" <<'RUN'
#!/bin/bash -e
export MPICH_GPU_SUPPORT_ENABLED=1
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
#SBATCH --this-is-text
python -u train.py 2>/dev/null | tee rank.log
RUN
chmod +x "$Job/run-me.sh"

MyMasks="0x${fe}000000000000, 0x${fe}00000000000000, 0x${fe}0000, 0x${fe}000000, 0x${fe}, 0x${fe}00, 0x${fe}00000000, 0x${fe}000000000000"
echo "$N nodes"
time srun --cpu-bind=mask_cpu:$MyMasks \
  singularity exec -B "$Job:$PWD" -B /opt/cray "$Container" "$Job/run-me.sh" 2>/dev/null && tee my.log
# site: lumi-g
# expect: 4 walltime-over-limit
# expect: 8 gpus-conflict
# expect: 16 master-addr-unused
# expect: 25 status-lost-in-pipe
# expect: 29 bind-far-from-gpu
# expect: 29 bind-list-blanks
# expect: 29 bind-shared-cores
# expect: 29 mask-undefined-variable
# expect: 31 stderr-discarded
# expect: 32 tee-without-pipe
