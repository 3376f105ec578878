"""The batch scripts in a folder: the files that hold directives of a scheduler."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS

_HEAD = 65536
"""Bytes in which the first directive stands."""
_OTHERS = "OAR|PJM|MSUB"
_SENTINELS = "|".join([*(re.escape(one.sentinel) for one in DIRECTIVE_READERS), _OTHERS])
_DIRECTIVE = re.compile(rf"^\s*#\s?({_SENTINELS})[ \t]*-", re.MULTILINE)


def batch_scripts(folder: Path, excluded: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the batch scripts below a folder in the order of their names.

    Hidden folders are left out, and the scripts and folders that are ``excluded``.
    """
    for place, folders, names in os.walk(folder):
        kept = [name for name in folders if not (name.startswith(".") or excluded(Path(place, name)))]
        folders[:] = sorted(kept)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not excluded(path) and _is_batch_script(path):
                yield path


def _is_batch_script(path: Path) -> bool:
    """Tell whether a file has directives; a file that cannot be read has none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return b"\0" not in head and _DIRECTIVE.search(head.decode("utf-8", errors="replace")) is not None
