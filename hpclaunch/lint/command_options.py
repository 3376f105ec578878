"""Options that sbatch, srun, mpiexec and qsub know (their man pages), and variables every job has."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


SLURM_SHORT = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint",
    "c": "cpus-per-task", "D": "chdir", "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus",
    "H": "hold", "I": "immediate", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses",
    "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks", "O": "overcommit", "o": "output",
    "p": "partition", "Q": "quiet", "q": "qos", "S": "core-spec", "s": "oversubscribe", "t": "time",
    "V": "version", "v": "verbose", "W": "wait", "w": "nodelist", "x": "exclude",
}  # fmt: skip
SLURM_FLAGS = names(
    "hold no-kill overcommit quiet oversubscribe version verbose wait contiguous exclusive ignore-pbs "
    "parsable reboot requeue no-requeue spread-job test-only use-min-nodes propagate get-user-env "
    "parallel-workaround help usage stepmgr kill-on-invalid-dep"
)
"""Options of sbatch that stand alone, or take a value behind ``=`` only."""
SLURM_VALUED = names(
    "account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint "
    "container container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline "
    "delay-boot dependency distribution error exclude export export-file extra extra-node-info gid gpu-bind "
    "gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name "
    "licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice "
    "no-bell nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node "
    "ntasks-per-socket open-mode output partition power prefer priority profile qos reservation resv-ports "
    "segment signal sockets-per-node switches thread-spec threads-per-core time time-min tmp tres-bind "
    "tres-per-job tres-per-task uid wait-all-nodes wckey wrap oom-kill-step"
)
SLURM_PLUGINS = names(
    "uenv view environment container-image container-mounts container-workdir container-name container-env "
    "container-save container-mount-home container-remap-root container-entrypoint container-writable"
)
"""Options of plugins that several sites have: CSCS' uenv and container engine, and pyxis."""
SLURM_OPTIONS = SLURM_FLAGS | SLURM_VALUED | SLURM_PLUGINS
SLURM_ALIASES = {"tasks-per-node": "ntasks-per-node", "workdir": "chdir", "share": "oversubscribe"}
"""Other names that sbatch takes for an option."""

SRUN_SHORT = {
    "n": "ntasks", "N": "nodes", "c": "cpus-per-task", "G": "gpus", "t": "time", "p": "partition",
    "A": "account", "J": "job-name", "o": "output", "e": "error", "i": "input", "m": "distribution",
    "w": "nodelist", "x": "exclude", "D": "chdir", "C": "constraint", "T": "threads", "W": "wait",
    "r": "relative", "d": "dependency", "q": "qos", "L": "licenses", "B": "extra-node-info", "M": "clusters",
    "S": "core-spec", "I": "immediate", "F": "nodefile", "Z": "no-allocate",
}  # fmt: skip
SRUN_FLAGS = names("l u v Q k K s O E X H h")
SRUN_VALUED = names(
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
MPI_VALUED = names(
    "n np ppn c depth d hostfile machinefile f host hosts H wdir wd cpu-bind bind-to map-by rank-by npernode "
    "N gpu-bind mem-bind line-buffer x iface launcher output-filename cc j r a g b report-bindings-to"
)
MPI_TWO = frozenset({"env", "genv", "mca", "gmca", "prtemca", "pmixmca"})

LOOKING_AROUND = names(
    "hostname echo printf env date nvidia-smi rocm-smi lscpu numactl true printenv nproc cat which "
    "scontrol ls uptime df free"
)

SYSTEM_VARIABLES = names(
    "HOME USER LOGNAME PATH PWD OLDPWD SHELL HOSTNAME HOST TMPDIR TERM LANG UID EUID PPID RANDOM SECONDS "
    "LINENO IFS OSTYPE HOSTTYPE MACHTYPE BASH BASH_SOURCE BASH_VERSION BASH_SUBSHELL BASHPID FUNCNAME "
    "PIPESTATUS SHLVL EPOCHSECONDS REPLY OPTARG OPTIND SCRATCH WORK PROJECT LD_LIBRARY_PATH PYTHONPATH "
    "MANPATH MODULEPATH VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV DISPLAY"
)
