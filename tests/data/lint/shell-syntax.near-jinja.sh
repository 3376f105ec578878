#!/bin/bash
#SBATCH --nodes=1 --time=10
srun ./app {% for k, v in tags.items() %} --tag {{k}}={{v}} {% endfor %}
# site: unknown
