"""The language that a batch script is written in: its first line says so."""

import re
from typing import Literal

Language = Literal["bash", "sh", "ksh", "zsh", "csh", "python", "other"]
"""bash, sh, ksh, zsh: read as a shell script. csh: csh or tcsh, of which only the lines that start programs
and set variables are read. python and other: only the directives are read."""

_SHELLS: dict[str, Language] = {
    "bash": "bash", "sh": "sh", "dash": "sh", "ksh": "ksh", "mksh": "ksh", "ksh93": "ksh", "zsh": "zsh",
    "csh": "csh", "tcsh": "csh",
}  # fmt: skip
_PYTHON_LINE = re.compile(r"(import|from)\s+[A-Za-z_.]+|\"\"\"|'''|def \w+\(|class \w+")


def language_of(text: str) -> Language:
    """Return the language of a script; without a ``#!`` line it is bash unless it begins like Python."""
    first = text.partition("\n")[0].strip()
    if first.startswith("#!"):
        return _by_interpreter(first[2:])
    code = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    return "python" if _PYTHON_LINE.match(code) else "bash"


def _by_interpreter(words: str) -> Language:
    """Return the language of the program that a ``#!`` line names; a template's placeholder is a shell."""
    names = [word.rpartition("/")[2] for word in words.split()]
    names = [
        name for name in names if name and not name.startswith("-") and "=" not in name and name != "env"
    ]
    name = names[0] if names else "bash"
    if re.match(r"(python|pypy|ipython)[\d.]*$", name):
        return "python"
    return _SHELLS.get(name, "bash" if name.startswith(("@", "{", "<", "$")) else "other")


def code_lines(text: str) -> list[int]:
    """Return the lines of code of a script in another language."""
    lines = enumerate(text.split("\n"), 1)
    return [number for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
