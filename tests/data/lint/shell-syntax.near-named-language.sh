#$ -S /usr/bin/Rscript
#$ -cwd
x <- f(1, 2)
if (x > 1) { print(x) }
# site: unknown
# expect: 1 language-not-read
