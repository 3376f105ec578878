#!/bin/bash
<% if (long) { %>
#SBATCH --time=<%= time %>
<% } %>
cd <%= folder %>
#SBATCH --nodes=<%= nodes %>
srun ./app
# site: unknown
# expect: 3 placeholder
# expect: 6 directive-ignored
