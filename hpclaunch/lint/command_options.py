"""Options that srun and mpiexec know (their man pages), and variables that every job has."""

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
    "n np ppn c depth d hostfile machinefile f host hosts H wdir wd cpu-bind bind-to map-by rank-by "
    "npernode N gpu-bind mem-bind x iface launcher output-filename cc j r a g b perhost bootstrap tag wlm "
    "rmaps pernode-id mca-base-param-file prefix path oversubscribe-limit cpus-per-proc cpu-set cpu-list "
    "rankfile rf am app machine wdir-per-host timeout display env-list envlist genvlist configfile"
)
JSRUN_SHORT = {
    "n": "nrs", "a": "tasks_per_rs", "c": "cpu_per_rs", "g": "gpu_per_rs", "r": "rs_per_host", "p": "np",
    "b": "bind", "d": "launch_distribution", "l": "latency_priority", "E": "env", "D": "env_eval",
    "K": "rs_per_socket", "m": "memory_per_rs", "M": "smpiargs", "h": "chdir", "k": "stdio_stderr",
    "o": "stdio_stdout", "t": "stdio_input", "e": "stdio_mode", "U": "use_resources", "f": "appfile",
}  # fmt: skip
APRUN_SHORT = {
    "n": "n", "N": "ppn", "d": "depth", "j": "j", "e": "env", "S": "S", "L": "L", "p": "p", "r": "r",
    "t": "t", "m": "m", "M": "M", "a": "a", "B": "B", "P": "P", "A": "A",
}  # fmt: skip
APRUN_LONG = name_set("cc cp sl sn ss")
MPI_TWO = frozenset({"env", "genv", "mca", "gmca", "prtemca", "pmixmca"})

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
