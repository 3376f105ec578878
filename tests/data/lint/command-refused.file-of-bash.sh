#PBS -S /bin/tcsh
#PBS -l select=1:ncpus=4
source ~/.bashrc
source /opt/env/bin/activate
source /opt/setup.sh
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 3 command-refused
# expect: 4 command-refused
# expect: 5 command-refused
