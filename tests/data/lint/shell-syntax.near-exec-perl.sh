#!/bin/sh
#SBATCH --ntasks=1
exec perl -x "$0"
#!perl
my ($x) = (1, 2);
print "done\n" if ($x > 0);
__END__
# site: unknown
