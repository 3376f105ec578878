"""Names and values of variables and options that programs of jobs read: ``known_variables.yaml``."""

from pathlib import Path

from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.site.yaml_tree import read_tree

_TABLE = read_tree(Path(__file__).with_suffix(".yaml")).plain()
NAMES = name_set(f"{_TABLE['nccl']} {_TABLE['others']}")
PREFIXES = ("NCCL_", "MIOPEN_", "MASTER_", "OMP_", "ROCR_", "HIP_VIS")
"""Beginnings of names that are compared with ``NAMES``."""
SLIPS: dict[str, str] = _TABLE["slips"]
"""Names that people write -> the name that is read."""
SYSTEM = name_set(_TABLE["system"])
"""Variables that every job has."""
INFORMATION_COMMANDS = name_set(_TABLE["information_commands"])
"""Commands that only print information."""
SLURM = name_set(_TABLE["slurm"])
"""Names that Slurm sets."""
VALUES: dict[str, frozenset[str]] = {name: name_set(values) for name, values in _TABLE["values"].items()}
"""Variables with few values, in any case of letters; of a list each item."""
OPTION_VALUES: dict[str, dict[str, dict[str, str]]] = {
    kind: {name: row for names, row in rows.items() for name in names.split()}
    for kind, rows in _TABLE["option_values"].items()
}
"""Scheduler -> option -> ``form``, a regular expression of the values read, and ``reads``, in words."""
FILE_SYSTEMS = name_set("SCRATCH PSCRATCH CSCRATCH WORK FAST")
"""Variables in which some sites name a file system: the profiles of Alps, Perlmutter and Leonardo, and
$CSCRATCH of NERSC's Cori. Where a site does not set one, a path that begins with it begins with /."""
