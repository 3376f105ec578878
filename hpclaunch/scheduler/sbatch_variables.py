"""The environment variables that sbatch puts above the options in a script.

man sbatch, INPUT ENVIRONMENT VARIABLES, of 22.05 to 25.11, and the table ``env_vars`` in src/sbatch/opt.c of
the same versions; tried with 22.05.8 and 25.05.9.
"""

from collections.abc import Iterator

from hpclaunch.scheduler.slurm_directives import SLURM_DIRECTIVES

_OPTIONS = (
    "account acctg-freq array batch bb cluster-constraint clusters consolidate-segments constraint"
    " container container-id core-spec cpu-freq cpus-per-gpu delay-boot distribution error exclusive"
    " export get-user-env gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres"
    " gres-flags hint ignore-pbs input job-name mem mem-bind mem-per-cpu mem-per-gpu network no-kill"
    " no-requeue open-mode output overcommit partition power profile qos requeue reservation segment"
    " signal spread-job spread-segments switches thread-spec threads-per-core time tres-bind"
    " tres-per-task use-min-nodes verbose wait wait-all-nodes wckey"
)
_OTHER_NAMES = {
    "array": "SBATCH_ARRAY_INX",
    "bb": "SBATCH_BURST_BUFFER",
    "clusters": "SBATCH_CLUSTERS SLURM_CLUSTERS",
    "cpu-freq": "SBATCH_CPU_FREQ_REQ",
    "hint": "SBATCH_HINT SLURM_HINT",
    "mem": "SBATCH_MEM_PER_NODE",
    "segment": "SBATCH_SEGMENT_SIZE",
    "switches": "SBATCH_REQ_SWITCH SBATCH_WAIT4SWITCH",
    "time": "SBATCH_TIMELIMIT",
    "verbose": "SBATCH_DEBUG",
}
VARIABLES: dict[str, str] = {
    option: _OTHER_NAMES.get(option, f"SBATCH_{option.upper().replace('-', '_')}")
    for option in _OPTIONS.split()
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
