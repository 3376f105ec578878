#!/bin/bash
#SBATCH --nodes={{ nodes }}
#SBATCH --time={{ time }}
{% if account %}
#SBATCH --account={{ account }}
{% endif %}
srun {{ command }}
# site: unknown
# expect: 2 placeholder
