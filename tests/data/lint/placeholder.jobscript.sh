#!/bin/sh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
# properties = {properties}
cd {workflow.workdir}
{exec_job}
# site: unknown
# expect: 5 placeholder
