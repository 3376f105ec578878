#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cat > chat.jinja <<'TEXT'
{% for one in messages %}
{{ one }}
{% endfor %}
TEXT
srun ./app --template '{% set a = 1 %}' --chat chat.jinja
# site: unknown
