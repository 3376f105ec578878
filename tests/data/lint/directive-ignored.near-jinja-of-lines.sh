#!/bin/bash
{# The account
 of the project. #}
{%- if account %}
#SBATCH --account={{ account }}
{%- endif %}
#SBATCH --time=01:00:00
srun {{ program }} {% if epochs %}--epochs 3{% endif %}
# site: unknown
# expect: 5 placeholder
