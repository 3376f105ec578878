"""The environment variables that sbatch puts above the options in a script.

man sbatch, INPUT ENVIRONMENT VARIABLES, of 22.05 to 25.11, and the table ``env_vars`` in src/sbatch/opt.c of
the same versions; tried with 22.05.8 and 25.05.9.
"""

from collections.abc import Iterator

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.slurm_directives import DIRECTIVES

_TABLE = msgspec.json.decode(text_beside(__file__, "slurm_variables.json"))
VARIABLES: dict[str, str] = _TABLE["read by sbatch"]
"""Long name of an option -> its variables. The option's letter is in ``slurm_options.json``."""
SINCE: dict[str, str] = _TABLE["since"]
"""Variable -> the first version that reads it, where that is not 22.05 or older."""


def overriding_variables(script: str) -> tuple[str, ...]:
    """Return the variables that would replace options of the script, and the one that makes sbatch wait."""
    given = {option.name for line in _directive_lines(script) for option in DIRECTIVES.read_text(line)}
    # Options that request the same thing in other ways: a script that gives one of them has decided.
    decided = given.union(*(same for same in _TABLE["same thing"] if given.intersection(same)), ("wait",))
    return tuple(name for option in VARIABLES if option in decided for name in VARIABLES[option].split())


def _directive_lines(script: str) -> Iterator[str]:
    """Yield the texts after #SBATCH, which sbatch reads up to the first command."""
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith("#SBATCH "):
            yield line.removeprefix("#SBATCH ")
