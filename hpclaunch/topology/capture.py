"""Save the description of a node, to be read on another machine: ``hpclaunch topology --save``."""

import json
import os
from pathlib import Path

from hpclaunch.atomic_file import new_folder, write_new_file
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.topology.source_kinds import SOURCE_KINDS, SYSFS, SourceKind
from hpclaunch.topology.sources import KINDS
from hpclaunch.topology.sysfs import copy_tree, default_root

MARKER = "topology.json"
"""File that marks the folder and lists what is missing; a folder without it is never replaced."""


def save_node(folder: Path) -> tuple[str, ...]:
    """Save a description of this node in ``folder``; return, as sentences, what is missing from it.

    Runs lscpu, numactl, rocm-smi, amd-smi, nvidia-smi and lstopo where installed, each with a time limit and
    LC_ALL=C, and copies the files of /sys that ``read_live`` uses. The folder is written completely or not
    at all; an older description there is replaced. With ``HPCLAUNCH_SYSROOT``
    other than ``/`` no tool is run: it would describe this machine instead. Raises BadInputError when
    ``folder`` holds something else or cannot be written.
    """
    root = default_root()
    folder = Path(os.path.abspath(folder))
    try:
        marked = folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir()))
        if folder.exists() and not marked:
            raise BadInputError(f"{folder}: exists and is not a saved topology", "name a new folder")
        with new_folder(folder, replace=True) as temporary:
            absent = _save_tools(temporary, root)
            copy = copy_tree(root)
            for path, text in copy.texts.items():
                _write(temporary / SYSFS / path, text)
            for path, target in copy.links.items():
                link = temporary / SYSFS / path
                link.parent.mkdir(parents=True, exist_ok=True)
                (link.parent / target).mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(target)
            _write(temporary / MARKER, json.dumps({"format": 1, "absent": absent}, indent=1) + "\n")
            temporary.chmod(0o755)
    except OSError as error:
        raise BadInputError.case("capture: not written", folder=folder, error=error) from None
    return tuple(absent)


def _save_tools(temporary: Path, root: Path) -> list[str]:
    """Save the output of each tool that prints something readable; return why each other one is missing."""
    if root.resolve() != Path("/"):
        return [f"no tool was run: the description is that of {root}"]
    absent = []
    for name, tool in SOURCE_KINDS.items():
        if not tool.commands:
            continue
        try:
            text = _output(tool)
            KINDS[name](text, tool.file)
        except RefusedError as error:
            absent.append(error.message)
        except BadInputError as error:
            # A tool that finds no GPU or no driver prints an error message instead of a table.
            absent.append(f"the output of {tool.commands[0][0]} cannot be read: {error.message}")
        else:
            _write(temporary / tool.file, text)
    return absent


def _output(tool: SourceKind) -> str:
    """Return what a tool prints; raises RefusedError where it is missing, fails or takes too long."""
    texts = []
    for command in tool.commands:
        answer = LocalHost().run(command, timeout_s=tool.limit_s, env={"LC_ALL": "C"})
        if answer.exit_code != 0:
            raise RefusedError(f"{' '.join(command)} ended with exit status {answer.exit_code}")
        texts.append(answer.stdout)
    return "\n".join(texts)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_new_file(path, text.encode(errors="replace"))
