#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --mem=32G
java -Xmx26g -jar app.jar
java -Xmx512m -jar small.jar
# java -Xmx64g -jar app.jar
# site: unknown
