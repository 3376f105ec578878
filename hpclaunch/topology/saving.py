"""Write down what a node says of itself: tools' output and the files of /sys that the reader uses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from hpclaunch.errors import BadInputError
from hpclaunch.topology.partial import Partial
from hpclaunch.topology.sysfs import Tree, default_root, read_tree
from hpclaunch.topology.text import MAX_CHARS

Readers = Mapping[str, Callable[[str, str], Partial]]

MARKER = "topology.json"
"""File that says what the folder is and what was not there; a folder without it is never replaced."""


class Tool(NamedTuple):
    """One program that describes a node: what to run, where its output goes, how long it may take."""

    kind: str
    file: str
    commands: tuple[tuple[str, ...], ...]
    limit_s: float


# rocm-smi takes up to 20 s on large nodes. Two outputs of lscpu in one file: the reader joins them.
TOOLS = (
    Tool("lscpu", "lscpu.txt", (("lscpu",), ("lscpu", "-p=CPU,CORE,SOCKET,NODE,CACHE")), 20),
    Tool("numactl", "numactl.txt", (("numactl", "-H"),), 20),
    Tool("rocm_smi", "rocm-smi.txt", (("rocm-smi", "--showtoponuma", "--showbus"),), 90),
    Tool("amd_smi", "amd-smi.json", (("amd-smi", "static", "--numa", "--bus", "--json"),), 90),
    Tool("nvidia_smi", "nvidia-smi.txt", (("nvidia-smi", "topo", "-m"),), 60),
    Tool("hwloc", "hwloc.xml", (("lstopo-no-graphics", "--of", "xml"),), 60),
)
SYSFS_FOLDER = "sysfs"


def save(folder: Path, readers: Readers, sysroot: Path | None) -> tuple[str, ...]:
    """Write a description of this node into ``folder`` and return, in sentences, what was not there.

    The folder appears whole or not at all. With a ``sysroot`` other than ``/`` no tool is run: it would
    describe this machine instead. Raises BadInputError when ``folder`` holds something else or cannot be written.
    """
    root = sysroot or default_root()
    folder = Path(os.path.abspath(folder))
    _check_replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise BadInputError(
            f"{folder}: cannot be written: {error.strerror}", "choose another folder"
        ) from None
    try:
        absent = _fill(made, readers, root)
        record = {"format": 1, "absent": absent}
        _write(made / MARKER, json.dumps(record, indent=1) + "\n")
        made.chmod(0o755)
        _swap(made, folder)
    except OSError as error:
        raise BadInputError(
            f"{folder}: cannot be written: {error.strerror}", "choose another folder"
        ) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return tuple(absent)


def _check_replaceable(folder: Path) -> None:
    if folder.exists() and not (
        folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir()))
    ):
        raise BadInputError(f"{folder}: exists and is no saved topology", "name a new folder")


def _swap(made: Path, folder: Path) -> None:
    """Put the new folder in place of an older one; the older one is removed last."""
    if not folder.exists():
        os.rename(made, folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    os.rename(folder, old / "old")
    os.rename(made, folder)
    shutil.rmtree(old, ignore_errors=True)


def _fill(made: Path, readers: Readers, root: Path) -> list[str]:
    absent = []
    if root.resolve() == Path("/"):
        for tool in TOOLS:
            text, problem = _output(tool)
            if not problem:
                problem = _refusal(readers[tool.kind], text, tool)
            if problem:
                absent.append(problem)
            else:
                _write(made / tool.file, text)
    else:
        absent.append(f"no tool was run: the description is that of {root}")
    _copy_tree(made / SYSFS_FOLDER, root)
    return absent


def _refusal(reader: Callable[[str, str], Partial], text: str, tool: Tool) -> str | None:
    """Return why a tool's output cannot be read, None where it can (no GPU, a driver that is not loaded)."""
    try:
        reader(text, tool.file)
    except BadInputError as error:
        return f"{tool.commands[0][0]}: {error.message}"
    return None


def _output(tool: Tool) -> tuple[str, str | None]:
    """Run a tool in the C locale within its time; return its output, or else why there is none."""
    program = tool.commands[0][0]
    if shutil.which(program) is None:
        return "", f"{program}: not installed"
    texts = []
    for command in tool.commands:
        # A file instead of a pipe: a child that outlives the time limit cannot keep us waiting.
        with tempfile.TemporaryFile() as output:
            try:
                status = _run(command, output, tool.limit_s)
            except OSError as error:
                return "", f"{program}: cannot be started: {error.strerror}"
            texts.append(_read_back(output))
        if status is None:
            return "", f"{program}: no answer within {tool.limit_s:g} s"
        if status != 0:
            return "", f"{' '.join(command)}: ended with exit status {status}"
    return "\n".join(texts), None


def _run(command: tuple[str, ...], output: IO[bytes], limit_s: float) -> int | None:
    """Return the exit status, None when the time was up; then the program and its children are ended."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _read_back(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(MAX_CHARS).decode("utf-8", "replace")


def _copy_tree(target: Path, root: Path) -> None:
    """Copy the files that the reader uses; of /proc/self/status only the line about CPUs."""
    tree = Tree(root, {}, {})
    read_tree(tree)
    for path, text in tree.seen.items():
        if path == "proc/self/status":
            text = "".join(line for line in text.splitlines(True) if line.startswith("Cpus_allowed_list:"))
        _write(target / path, text)
    for path, address in tree.links.items():
        link = target / path
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            depth: Sequence[str] = [".."] * (len(Path(path).parts) - 2)
            (target / "sys/bus/pci/devices" / address).mkdir(parents=True, exist_ok=True)
            link.symlink_to(Path(*depth, "bus/pci/devices", address))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        if path.name == MARKER:
            os.fsync(file.fileno())
