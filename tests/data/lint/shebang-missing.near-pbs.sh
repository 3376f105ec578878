#PBS -l select=1 -l walltime=1:00:00
cd $PBS_O_WORKDIR
mpiexec ./app
# site: unknown
