"""Names and values of variables and options that programs of jobs read: ``known_variables.yaml``."""

from pathlib import Path
from typing import Any

from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.site.yaml_tree import read_tree

TABLE: dict[str, Any] = read_tree(Path(__file__).with_suffix(".yaml")).plain()
"""The whole file; what one rule alone needs, it takes from here."""
NAMES = name_set(f"{TABLE['nccl']} {TABLE['others']}")
PREFIXES = ("NCCL_", "MIOPEN_", "MASTER_", "OMP_", "ROCR_", "HIP_VIS")
"""Beginnings of names that are compared with ``NAMES``."""
SLIPS: dict[str, str] = TABLE["slips"]
"""Names that people write -> the name that is read."""
SYSTEM = name_set(TABLE["system"])
"""Variables that every job has."""
INFORMATION_COMMANDS = name_set(TABLE["information_commands"])
"""Commands that only print information."""
PREPARES = name_set(TABLE["prepares"])
"""Commands that only prepare a job."""
SHOWS = PREPARES | INFORMATION_COMMANDS | name_set(TABLE["reports"])
"""Those, and commands that show the state of jobs or what files hold."""
SET_BY_SCHEDULERS = name_set(" ".join(TABLE["set_by_schedulers"].values()))
"""Names that schedulers set."""
VALUES: dict[str, frozenset[str]] = {name: name_set(values) for name, values in TABLE["values"].items()}
"""Variables with few values, in any case of letters; of a list each item."""
OPTION_VALUES: dict[str, dict[str, dict[str, dict[str, str]]]] = {
    rule: {
        kind: {name: row for names, row in rows.items() for name in names.split()}
        for kind, rows in kinds.items()
    }
    for rule, kinds in TABLE["option_values"].items()
}
"""Rule -> scheduler -> option -> ``form``, a pattern of the values read, and ``reads``, in words."""
SHELLCHECK_REPEATS: dict[str, str] = {
    rule: codes for rules, codes in TABLE["shellcheck_repeats"].items() for rule in rules.split()
}
"""Rule -> the codes of shellcheck that say the same again, or follow from it."""
FILE_SYSTEMS = name_set(TABLE["file_systems"])
"""Variables in which some sites name a file system."""
