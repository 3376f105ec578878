#!/bin/bash
#SBATCH --gpus=8
#SBATCH --exclusive
srun --cpu-bind=map_cpu: 49,57, 17,25, 1,9, 33,41 \
    ./application
MASK="0x${fe}000000000000,0x${fe}0000000000000000,
0x${fe}0000,0x${fe}000000,0x${fe},0x${fe}00,
0x${fe}00000000,0x${fe}000000000000"
srun --cpu-bind=mask_cpu:$MYMASKS \
    ./application
# site: unknown
# expect: 4 bind-list-blanks
# expect: 4 bind-list-count
# expect: 6 bind-list-blanks
# expect: 6 mask-undefined-variable
# expect: 7 mask-undefined-variable
# expect: 8 mask-undefined-variable
# expect: 9 bind-list-count
# expect: 9 bind-shared-cores
# expect: 9 variable-name-mismatch
