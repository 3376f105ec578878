"""Which files of a job may be timelines, and their reading."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from hpclaunch.errors import BadInputError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.fetch_results import RemoteFile, fetch, list_results
from hpclaunch.job.record import BindingVerdict, JobRecord
from hpclaunch.package_data import package_constants
from hpclaunch.plan.startup_plan import NODES
from hpclaunch.timeline.job_timeline import JobTimeline, Place, combined
from hpclaunch.timeline.read_timeline import TimelineFile, read_timeline

_NAMES = re.compile(r"\.json(\.gz)?$|trace_?(rank)?_?\d+$|\.pickle$", re.IGNORECASE)
_WORDS = package_constants("observe/words.yaml", "timelines")


def timeline_files(host: Host, record: JobRecord, index: int | None = None) -> tuple[RemoteFile, ...]:
    """Return the files in the job's folder that have the name of a trace, and what ``--timeline`` named.

    ``index``: of a job of an array; then those in its own folder. Raises RefusedError where the host does not
    list them.
    """
    found = {file.source: file for file in list_results(host, record, ()).files}
    for named in _named(record):
        with suppress(BadInputError):  # it was never written, or is in the job's folder
            found |= {file.source: file for file in list_results(host, record, (named,)).files}
    chosen = [
        file
        for file in found.values()
        if _NAMES.search(file.source)
        and file.source.rpartition("/")[2] not in _WORDS.ours
        and file.size
        and (index is None or file.source.startswith(f"{record.folder}/{index}/"))
    ]
    return tuple(sorted(chosen, key=lambda file: file.source)[: _WORDS.most])


def rank_nodes(host: Host, record: JobRecord) -> dict[int, str]:
    """Return each rank's node, if no binding is reported; not of ranks on two. Raises RefusedError."""
    answer = host.run(("grep", "-r", "", f"{record.folder}/{NODES}"), timeout_s=_WORDS.timeout_s)
    nodes: dict[int, set[str]] = {}
    for line in answer.stdout.splitlines():
        path, _, rank = line.rpartition(":")
        if rank.isdecimal():
            nodes.setdefault(int(rank), set()).add(path.rpartition("/")[2])
    return {rank: min(names) for rank, names in nodes.items() if len(names) == 1}


def bound_places(verdict: BindingVerdict | None) -> dict[int, Place]:
    """Return where ranks ran by their reports of binding."""
    ranks = verdict.ranks if verdict else ()
    return {rank.rank: Place(rank.host, rank.gpus.replace("none", "") or None) for rank in ranks}


def timeline_of(record: JobRecord | None, files: Sequence[TimelineFile]) -> JobTimeline:
    """Put a job's files together, with what its record tells; BadInputError where two are of one rank."""
    if record is None:
        return combined(files)
    rank = (record.failure.rank if record.failure else None) or ""
    return combined(
        files,
        record.tasks,
        begins_within=record.request.get("profile") is not None,
        failed=int(rank) if rank.isdecimal() else None,
    )


def brought(host: Host, record: JobRecord, files: Sequence[RemoteFile], folder: Path) -> dict[str, Path]:
    """Return where the files are on this machine, by the names to show; those of another machine are copied.

    The copies are in ``folder``; their names to show begin with that of the machine.
    """
    if record.host is None:
        return {file.source: Path(file.source) for file in files}
    fetch(host, files, folder, replace=True)
    return {f"{record.host}:{file.source}": folder / file.name for file in files}


def read_timelines(
    paths: Mapping[str, Path], left_out: Callable[[BadInputError], object] = lambda _: None
) -> list[TimelineFile]:
    """Read what is a timeline among files, by their shown names; raises BadInputError where none is.

    ``left_out`` is called with the reason for each file that is none, and may raise it.
    """
    files: list[TimelineFile] = []
    refused: list[BadInputError] = []
    for number, (name, path) in enumerate(paths.items()):
        try:
            files.append(read_timeline(name, file_chunks(path), number))
        except BadInputError as error:
            left_out(error)
            refused.append(error)
    if not files:
        raise refused[0]
    return files


def _named(record: JobRecord) -> list[str]:
    """Return the files that the request and the bundled training's arguments name."""
    words = list(record.command) if record.bundled else []
    named = [after for before, after in pairwise(words) if before == "--timeline"]
    named += [word.partition("=")[2] for word in words if word.startswith("--timeline=")]
    named.append(str(record.request.get("timeline") or ""))
    return [name for name in named if name]


def file_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces, since a timeline may be larger than the memory.

    Raises BadInputError where it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while chunk := file.read(_WORDS.chunk_bytes):
                yield chunk
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
