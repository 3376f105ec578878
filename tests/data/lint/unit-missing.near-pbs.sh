#!/bin/bash
#PBS -l walltime=600
#PBS -l mem=16gb
cd /scratch/project
./app
# site: unknown
