#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --mem=0
java -Xmx64g -jar app.jar
# site: unknown
