#!/bin/bash
module load OpenMPI/4.1.4-GCC-11.3.0 SciPy-bundle/2022.05-foss-2022a
srun ./app
# site: unknown
# expect: 2 module-old
