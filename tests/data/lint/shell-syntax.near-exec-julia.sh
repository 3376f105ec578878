#!/bin/bash
#SBATCH --ntasks=1
#=
exec julia "$0" "$@"
=#
using Distributed
f(x) = (x + 1) * 2
for i in 1:3
    println("it's $(f(i))")
end
# site: unknown
