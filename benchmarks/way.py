"""The way of a command through the code: files, stays and climbs.

    python benchmarks/way.py submit --site lumi-g --account project_465000001 --dry-run mnist

The words are those of ``hpclaunch``, which runs in this process; run it twice, since the first run fills the
caches. A *stay* begins where the next function that is called stands in another file of ``hpclaunch/`` than
the one before; a *climb* is a stay in a file where the way has been before. The bodies of modules and classes
do not count. Each file with the function by which it is entered first, and the figures, go to stderr.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import hpclaunch
from hpclaunch.cli.main import main

_PACKAGE = f"{Path(hpclaunch.__file__).parent}/"


class Call(NamedTuple):
    """A function that was called: its file below ``hpclaunch/``, and its name."""

    file: str
    function: str


def calls_of(words: Sequence[str]) -> list[Call]:
    """Run ``hpclaunch WORDS`` in this process; return its calls in their order."""
    calls: list[Call] = []

    def noted(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # no module and no body of a class
        if event == "call" and is_function and code.co_filename.startswith(_PACKAGE):
            calls.append(Call(code.co_filename.removeprefix(_PACKAGE), code.co_name))

    before, sys.argv = sys.argv, ["hpclaunch", *words]
    sys.setprofile(noted)
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        sys.argv = before
    return calls


def figures(calls: Sequence[Call]) -> dict[str, int]:
    """Return the number of files, stays and climbs."""
    files, stays = len({call.file for call in calls}), len([*groupby(calls, lambda call: call.file)])
    return {"files": files, "stays": stays, "climbs": stays - files}


if __name__ == "__main__":
    found = calls_of(sys.argv[1:])
    entered: dict[str, str] = {}
    for call in found:
        entered.setdefault(call.file, call.function)
    for file, function in entered.items():
        sys.stderr.write(f"{file}  {function}\n")
    sys.stderr.write(", ".join(f"{number} {name}" for name, number in figures(found).items()) + "\n")
