#!/usr/bin/env python3
#SBATCH --nodes=1
#SBATCH --time=01:00:00
import os
text = '''
#SBATCH --bogus
'''
# site: unknown
# expect: 1 language-not-read
