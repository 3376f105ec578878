#!/bin/bash
module load foss/2023a
ml h5py/3.11.0-foss-2024a
srun ./app
# site: unknown
# expect: 3 module-toolchain-mismatch
