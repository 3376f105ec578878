"""The ``#SBATCH`` lines of a batch script (man sbatch), and the variables that sbatch puts above them.

man sbatch, INPUT ENVIRONMENT VARIABLES, of 22.05 to 25.11, and the table ``env_vars`` in src/sbatch/opt.c of
the same versions; tried with 22.05.8 and 25.05.9.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler import directive_reader
from hpclaunch.walltime import clock_s

_GRES_GPUS = re.compile(r"(?:gres[/:])?gpu(?:[:=][A-Za-z][\w.-]*)?(?:[:=](\d{1,6}))?(?:\(.*\))?")


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    return directive_reader.RequestedResources(
        nodes=directive_reader.given_number(directives, "nodes", directive_reader.highest_number),
        tasks=directive_reader.given_number(directives, "ntasks"),
        tasks_per_node=directive_reader.given_number(directives, "ntasks-per-node"),
        cpus_per_task=directive_reader.given_number(directives, "cpus-per-task"),
        cpus_per_gpu=directive_reader.given_number(directives, "cpus-per-gpu"),
        gpus=directive_reader.given_number(directives, "gpus", _gpu_count),
        gpus_per_node=directive_reader.given_number(directives, "gpus-per-node", _gpu_count)
        or directive_reader.given_number(directives, "gres", _gres_gpus),
        gpus_per_task=directive_reader.given_number(directives, "gpus-per-task", _gpu_count),
        threads_per_core=directive_reader.given_number(directives, "threads-per-core"),
        walltime_s=directive_reader.given_number(directives, "time", slurm_time_s),
    )


def _gpu_count(text: str) -> int | None:
    """Read ``8``, ``a100:8`` or ``a100:4,v100:4``."""
    counts = [directive_reader.whole_number(part.rpartition(":")[2]) for part in text.split(",")]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _gres_gpus(text: str) -> int | None:
    """Read the GPUs of ``--gres=gpu:mi250:8,nvme:1``; ``gpu`` alone is one."""
    matches = [_GRES_GPUS.fullmatch(part) for part in text.split(",")]
    return next((int(match[1] or 1) for match in matches if match), None)


def slurm_time_s(text: str) -> int | None:
    """Read a time as Slurm does (parse_time.c, 22.05): minutes, M:S, H:M:S, D-, D-H, D-H:M or D-H:M:S."""
    with_days = r"(?P<d>\d{1,6})-(?:(?P<h>\d{1,9})(?::(?P<m>\d{1,9}))?(?::(?P<s>\d{1,9}))?)?"
    without = r"(?P<h2>\d{1,9}):(?P<m2>\d{1,9}):(?P<s2>\d{1,9})|(?P<m3>\d{1,9})(?::(?P<s3>\d{1,9}))?"
    return clock_s(f"{with_days}|{without}", text)


DIRECTIVES = directive_reader.DirectiveReader(
    # With options of plugins that several sites have: Shifter, EAR, uenv and container engine of CSCS, pyxis.
    **directive_reader.gnu_facts(
        "slurm", separators=directive_reader.COMPONENT_SEPARATORS, equals_is_value=True
    ),
    requested=_requested,
)

_TABLE = msgspec.json.decode(text_beside(__file__, "variables.json"))
VARIABLES: dict[str, str] = _TABLE["read by sbatch"]
"""Long name of an option -> its variables. The option's letter is in ``options.json``."""


def overriding_variables(script: str) -> tuple[str, ...]:
    """Return the variables that would replace options of the script, and the one that makes sbatch wait."""
    # sbatch reads the texts behind #SBATCH up to the first command.
    head = takewhile(lambda line: not line.strip() or line.startswith("#"), script.splitlines())
    texts = (line.removeprefix("#SBATCH ") for line in head if line.startswith("#SBATCH "))
    given = {option.name for text in texts for option in DIRECTIVES.read_text(text)}
    # Options that request the same thing in other ways: a script that gives one of them has decided.
    decided = given.union(*(same for same in _TABLE["same thing"] if given.intersection(same)), ("wait",))
    return tuple(name for option in VARIABLES if option in decided for name in VARIABLES[option].split())
