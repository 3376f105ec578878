"""Commands that only print information, and variables that every job has."""

from hpclaunch.scheduler.directive_reader import name_set

INFORMATION_COMMANDS = name_set(
    "hostname echo printf env date nvidia-smi rocm-smi lscpu numactl true printenv nproc cat which "
    "scontrol ls uptime df free sleep id whoami pwd mkdir rm cp test ip "
    "xthi hello_jobstep hello_affinity acheck gpu_check hybrid_check lstopo taskset"
)

SYSTEM_VARIABLES = name_set(
    "HOME USER LOGNAME PATH PWD OLDPWD SHELL HOSTNAME HOST TMPDIR TERM LANG UID EUID PPID RANDOM SECONDS "
    "LINENO IFS OSTYPE HOSTTYPE MACHTYPE BASH BASH_SOURCE BASH_VERSION BASH_SUBSHELL BASHPID FUNCNAME "
    "PIPESTATUS SHLVL EPOCHSECONDS REPLY OPTARG OPTIND SCRATCH WORK PROJECT LD_LIBRARY_PATH PYTHONPATH "
    "MANPATH MODULEPATH VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV DISPLAY"
)
