#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
A=3
if [ $A =! 5 ]; then echo no; fi
if [[ $A === 5 ]]; then echo yes; fi
if [ $A >= 5 ]; then echo yes; fi
if [ $A eq 5 ]; then echo yes; fi
if [ !-d out ]; then mkdir out; fi
if [ "$A" -eq three ]; then echo yes; fi
if [ 0.5 -lt $A ]; then echo yes; fi
if $A == 1; then echo yes; fi
srun ./app
# site: unknown
# expect: 5 command-refused
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 11 command-refused
# expect: 12 command-refused
