#!/bin/bash
#BSUB -q <%= resources.queue %>
#BSUB -W <%= (seconds / 60).round %>
#BSUB -n <%= cores %>
<% if gpus %>
#BSUB -gpu "num=<%= gpus %>"
<% end %>
./app
# site: unknown
# expect: 2 placeholder
