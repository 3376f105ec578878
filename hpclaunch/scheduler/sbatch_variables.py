"""The environment variables that sbatch puts above the options in a script.

man sbatch, INPUT ENVIRONMENT VARIABLES, of 22.05 to 25.11, and the table ``env_vars`` in src/sbatch/opt.c of
the same versions; tried with 22.05.8 and 25.05.9.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpclaunch.scheduler.slurm_directives import SLURM_DIRECTIVES

WAITS = "SBATCH_WAIT"
"""Makes sbatch wait for the end of the job."""

VARIABLES: dict[str, str] = {
    "account": "SBATCH_ACCOUNT",
    "acctg-freq": "SBATCH_ACCTG_FREQ",
    "array": "SBATCH_ARRAY_INX",
    "batch": "SBATCH_BATCH",
    "bb": "SBATCH_BURST_BUFFER",
    "cluster-constraint": "SBATCH_CLUSTER_CONSTRAINT",
    "clusters": "SBATCH_CLUSTERS SLURM_CLUSTERS",
    "consolidate-segments": "SBATCH_CONSOLIDATE_SEGMENTS",
    "constraint": "SBATCH_CONSTRAINT",
    "container": "SBATCH_CONTAINER",
    "container-id": "SBATCH_CONTAINER_ID",
    "core-spec": "SBATCH_CORE_SPEC",
    "cpu-freq": "SBATCH_CPU_FREQ_REQ",
    "cpus-per-gpu": "SBATCH_CPUS_PER_GPU",
    "delay-boot": "SBATCH_DELAY_BOOT",
    "distribution": "SBATCH_DISTRIBUTION",
    "error": "SBATCH_ERROR",
    "exclusive": "SBATCH_EXCLUSIVE",
    "export": "SBATCH_EXPORT",
    "get-user-env": "SBATCH_GET_USER_ENV",
    "gpu-bind": "SBATCH_GPU_BIND",
    "gpu-freq": "SBATCH_GPU_FREQ",
    "gpus": "SBATCH_GPUS",
    "gpus-per-node": "SBATCH_GPUS_PER_NODE",
    "gpus-per-socket": "SBATCH_GPUS_PER_SOCKET",
    "gpus-per-task": "SBATCH_GPUS_PER_TASK",
    "gres": "SBATCH_GRES",
    "gres-flags": "SBATCH_GRES_FLAGS",
    "hint": "SBATCH_HINT SLURM_HINT",
    "ignore-pbs": "SBATCH_IGNORE_PBS",
    "input": "SBATCH_INPUT",
    "job-name": "SBATCH_JOB_NAME",
    "mem": "SBATCH_MEM_PER_NODE",
    "mem-bind": "SBATCH_MEM_BIND",
    "mem-per-cpu": "SBATCH_MEM_PER_CPU",
    "mem-per-gpu": "SBATCH_MEM_PER_GPU",
    "network": "SBATCH_NETWORK",
    "no-kill": "SBATCH_NO_KILL",
    "no-requeue": "SBATCH_NO_REQUEUE",
    "open-mode": "SBATCH_OPEN_MODE",
    "output": "SBATCH_OUTPUT",
    "overcommit": "SBATCH_OVERCOMMIT",
    "partition": "SBATCH_PARTITION",
    "power": "SBATCH_POWER",
    "profile": "SBATCH_PROFILE",
    "qos": "SBATCH_QOS",
    "requeue": "SBATCH_REQUEUE",
    "reservation": "SBATCH_RESERVATION",
    "segment": "SBATCH_SEGMENT_SIZE",
    "signal": "SBATCH_SIGNAL",
    "spread-job": "SBATCH_SPREAD_JOB",
    "spread-segments": "SBATCH_SPREAD_SEGMENTS",
    "switches": "SBATCH_REQ_SWITCH SBATCH_WAIT4SWITCH",
    "thread-spec": "SBATCH_THREAD_SPEC",
    "threads-per-core": "SBATCH_THREADS_PER_CORE",
    "time": "SBATCH_TIMELIMIT",
    "tres-bind": "SBATCH_TRES_BIND",
    "tres-per-task": "SBATCH_TRES_PER_TASK",
    "use-min-nodes": "SBATCH_USE_MIN_NODES",
    "verbose": "SBATCH_DEBUG",
    "wait": WAITS,
    "wait-all-nodes": "SBATCH_WAIT_ALL_NODES",
    "wckey": "SBATCH_WCKEY",
}
"""Long name of an option -> its variables. The option's letter is in ``slurm_directives``."""

SINCE: dict[str, str] = {
    "SBATCH_CONTAINER_ID": "23.02",
    "SBATCH_TRES_PER_TASK": "23.02",
    "SBATCH_TRES_BIND": "23.11",
    "SBATCH_SEGMENT_SIZE": "25.05",
    "SBATCH_CONSOLIDATE_SEGMENTS": "25.11",
    "SBATCH_SPREAD_SEGMENTS": "25.11",
}
"""Variable -> the first version that reads it, where that is not 22.05 or older."""

# Options that request the same thing in other ways: a script that gives one of them has decided.
_SAME_THING = (
    frozenset(("gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "tres-per-task")),
    frozenset(("cpus-per-task", "cpus-per-gpu", "tres-per-task")),
    frozenset(("mem", "mem-per-cpu", "mem-per-gpu")),
    frozenset(("hint", "threads-per-core")),
    frozenset(("core-spec", "thread-spec")),
    frozenset(("output", "error")),
    frozenset(("requeue", "no-requeue")),
    frozenset(("bb", "bbf")),
)


def overriding_variables(script: str) -> tuple[str, ...]:
    """Return the variables that would replace options of the script, and the one that makes sbatch wait."""
    given = {name for line in _directive_lines(script) for name in _names(line)}
    decided = given.union(*(options for options in _SAME_THING if options & given), ("wait",))
    return tuple(name for option in VARIABLES if option in decided for name in VARIABLES[option].split())


def _directive_lines(script: str) -> Iterator[str]:
    """Yield the texts after #SBATCH, which sbatch reads up to the first command."""
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith("#SBATCH "):
            yield line.removeprefix("#SBATCH ")


def _names(text: str) -> Iterator[str]:
    return (option.name for option in SLURM_DIRECTIVES.read_text(text))
