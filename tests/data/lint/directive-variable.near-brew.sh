#!/bin/bash
<%
nodes = if (is.null(resources$nodes)) 1L else resources$nodes
if (nodes > 3)
  stop("too many")
-%>
#SBATCH --nodes=<%= resources$nodes %>
#SBATCH --time=<%= ceiling(resources$walltime / 60) %>
<%= if (!is.null(resources$partition)) sprintf("#SBATCH --partition=%s", resources$partition) %>
<% if (array.jobs) { %>
#SBATCH --array=1-<%= nrow(jobs) %>
<% } %>
mpirun -n <%= resources$n %> <%= program %>
# site: unknown
# expect: 7 placeholder
