#!/usr/bin/perl
#PBS -l select=1
#PBS -l walltime=1:00:00
print 1;
# site: unknown
# expect: 1 language-not-read
