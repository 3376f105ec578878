#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks=1 --cpus-per-task=16 --mem-per-cpu=4G
java -Xmx50g -jar app.jar
# site: unknown
