#!/bin/bash
#PBS -A MyProject
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2
mpiexec -n 4 ./app
# site: polaris
# expect: 8 socket-ifname-unknown
