"""Options that srun and mpiexec know (their man pages), and variables that every job has."""

from __future__ import annotations

from hpclaunch.scheduler.directive_reader import name_set

SRUN_SHORT = {
    "n": "ntasks", "N": "nodes", "c": "cpus-per-task", "G": "gpus", "t": "time", "p": "partition",
    "A": "account", "J": "job-name", "o": "output", "e": "error", "i": "input", "m": "distribution",
    "w": "nodelist", "x": "exclude", "D": "chdir", "C": "constraint", "T": "threads", "W": "wait",
    "r": "relative", "d": "dependency", "q": "qos", "L": "licenses", "B": "extra-node-info", "M": "clusters",
    "S": "core-spec", "I": "immediate", "F": "nodefile", "Z": "no-allocate",
}  # fmt: skip
SRUN_FLAGS = name_set("l u v Q k K s O E X H h")
SRUN_VALUED = name_set(
    "account acctg-freq bb bcast chdir cluster-constraint clusters comment constraint container core-spec "
    "cores-per-socket cpu-bind cpu_bind cpu-freq cpus-per-gpu cpus-per-task deadline dependency "
    "distribution epilog error exclude export extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node "
    "gpus-per-socket gpus-per-task gres het-group hint input job-name jobid licenses mail-type mail-user mem "
    "mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout multi-prog nice network nodefile nodelist "
    "nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode "
    "output partition priority profile prolog qos relative reservation resv-ports signal slurmd-debug "
    "sockets-per-node switches task-epilog task-prolog thread-spec threads threads-per-core time time-min "
    "tmp treewidth tres-bind tres-per-task uid wait wckey environment"
)
MPI_VALUED = name_set(
    "n np ppn c depth d hostfile machinefile f host hosts H wdir wd cpu-bind bind-to map-by rank-by npernode "
    "N gpu-bind mem-bind line-buffer x iface launcher output-filename cc j r a g b report-bindings-to"
)
MPI_TWO = frozenset({"env", "genv", "mca", "gmca", "prtemca", "pmixmca"})

INFORMATION_COMMANDS = name_set(
    "hostname echo printf env date nvidia-smi rocm-smi lscpu numactl true printenv nproc cat which "
    "scontrol ls uptime df free"
)

SYSTEM_VARIABLES = name_set(
    "HOME USER LOGNAME PATH PWD OLDPWD SHELL HOSTNAME HOST TMPDIR TERM LANG UID EUID PPID RANDOM SECONDS "
    "LINENO IFS OSTYPE HOSTTYPE MACHTYPE BASH BASH_SOURCE BASH_VERSION BASH_SUBSHELL BASHPID FUNCNAME "
    "PIPESTATUS SHLVL EPOCHSECONDS REPLY OPTARG OPTIND SCRATCH WORK PROJECT LD_LIBRARY_PATH PYTHONPATH "
    "MANPATH MODULEPATH VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV DISPLAY"
)
