#PBS -q main -S /bin/csh
#PBS -l select=1:ncpus=4
setenv OMP_NUM_THREADS 4
cd $PBS_O_WORKDIR
if ($?PBS_JOBID) ./app
# site: unknown
