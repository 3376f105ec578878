#!/bin/bash
#flux: --setattr=bank=guests
#flux: --job-name=plasma
#flux: --nodes=16
#flux: --time-limit=360s
#flux: --queue=pbatch
#flux: --exclusive
#flux: --error=plasma.e{{id}}
#flux: --output=plasma.o{{id}}
export MPICH_OFI_NIC_POLICY=GPU
export OMP_NUM_THREADS=21
flux run --signal=SIGUSR1@120s --exclusive --nodes=16 --tasks-per-node=4 ./plasma inputs > output.txt
# A form of WarpX' documentation for Tuolumne.
