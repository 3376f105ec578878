#!/bin/bash
module load OpenMPI/5.0.10-GCC-14.3.0
module load SciPy-bundle/2022.05-foss-2022a
srun ./app
# site: unknown
# expect: 3 module-old
# expect: 3 module-toolchain-mismatch
