"""Write down what a node says of itself, to be read elsewhere: ``hpclaunch topology --save``."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hpclaunch.atomic_file import new_folder, write_new_file
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.topology.saved_node import MARKER, SYSFS_FOLDER, TOOLS, Tool, copy_of
from hpclaunch.topology.sources import KINDS
from hpclaunch.topology.sysfs import default_root


def save_node(folder: Path, sysroot: Path | None = None, host: Host | None = None) -> tuple[str, ...]:
    """Write a description of this node into ``folder``; return, in sentences, what was not there.

    Runs lscpu, numactl, rocm-smi, amd-smi, nvidia-smi and lstopo where installed, each with a time limit and
    LC_ALL=C, and copies the files of /sys that ``read_live`` uses. The folder appears whole or not at all; an
    older description in its place is replaced. With a ``sysroot`` (or ``HPCLAUNCH_SYSROOT``) other than ``/``
    no tool is run: it would describe this machine instead. Raises BadInputError when ``folder`` holds
    something else or cannot be written.
    """
    root = sysroot or default_root()
    folder = Path(os.path.abspath(folder))
    try:
        _check_replaceable(folder)
        with new_folder(folder, replace=True) as made:
            absent = _tools(made, root, host or LocalHost())
            _copy_tree(made / SYSFS_FOLDER, root)
            _write(made / MARKER, json.dumps({"format": 1, "absent": absent}, indent=1) + "\n")
            made.chmod(0o755)
    except OSError as error:
        raise BadInputError(
            f"{folder}: cannot be written: {error.strerror}", "choose another folder"
        ) from None
    return tuple(absent)


def _check_replaceable(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARKER).is_file()):
        raise BadInputError(f"{folder}: exists and is no saved topology", "name a new folder")


def _tools(made: Path, root: Path, host: Host) -> list[str]:
    """Keep the output of each tool that answers something readable; return why the others are missing."""
    if root.resolve() != Path("/"):
        return [f"no tool was run: the description is that of {root}"]
    absent = []
    for tool in TOOLS:
        try:
            text = _output(tool, host)
            KINDS[tool.kind](text, tool.file)
        except RefusedError as error:
            absent.append(error.message)
        except BadInputError as error:
            # A tool that finds no GPU or no driver prints an excuse instead of a table.
            absent.append(f"the output of {tool.commands[0][0]} cannot be read: {error.message}")
        else:
            _write(made / tool.file, text)
    return absent


def _output(tool: Tool, host: Host) -> str:
    """Return what a tool prints; raises RefusedError where it is missing, fails or takes too long."""
    texts = []
    for command in tool.commands:
        answer = host.run(command, timeout_s=tool.limit_s, env={"LC_ALL": "C"})
        if answer.exit_code != 0:
            raise RefusedError(f"{' '.join(command)} ended with exit status {answer.exit_code}")
        texts.append(answer.stdout)
    return "\n".join(texts)


def _copy_tree(target: Path, root: Path) -> None:
    copy = copy_of(root)
    for path, text in copy.files.items():
        _write(target / path, text)
    for path, leads_to in copy.links.items():
        link = target / path
        link.parent.mkdir(parents=True, exist_ok=True)
        (link.parent / leads_to).mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(leads_to)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_new_file(path, text.encode(errors="replace"))
