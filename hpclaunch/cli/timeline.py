"""``hpclaunch timeline``: where the time of a job's steps goes, and which rank the other ranks wait for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import show
from hpclaunch.errors import BadInputError, HpclaunchError

if TYPE_CHECKING:
    from hpclaunch.job.record import JobRecord
    from hpclaunch.site.schema import AllreduceFigure
    from hpclaunch.timeline.job_timeline import Place
    from hpclaunch.timeline.read_timeline import TimelineFile

_NAMES = ("*.json", "*.json.gz", "*trace*rank*", "*.pickle")
"""Files of a folder that may be timelines."""


@click.command()
@options("timeline")
def command(sources: tuple[str, ...], **options: Any) -> None:
    """Summarise the timelines of a job: where its time goes, which rank is late, and what would help."""
    with ExitStack() as stack:
        record, paths = _found(sources or ("last",), options["index"], stack)
        if options["repair"]:
            _repair(paths, options["repair"])
            return
        strict = record is None and not all(Path(source).is_dir() for source in sources)
        files = _read(paths, record, strict=strict)
        _report(files, record, options, paths)


def _found(
    sources: tuple[str, ...], index: int | None, stack: ExitStack
) -> tuple[JobRecord | None, dict[str, Path]]:
    """Return the files by their shown names, and their job's record; BadInputError where none is found."""
    if len(sources) == 1 and not Path(sources[0]).exists() and "/" not in sources[0]:
        return _of_job(sources[0], index, stack)
    if index is not None:
        raise click.UsageError("--index is for a JOB, not for files")
    paths: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            inside = sorted({path for name in _NAMES for path in source.rglob(name) if path.is_file()})
            if not inside:
                raise BadInputError(f"{source}: no file in it has the name of a timeline", "give the files")
            paths += inside
        elif source.exists():
            paths.append(source)
        else:
            raise BadInputError.case("timeline: no file", source=source)
    return None, {str(path): path for path in paths}


def _of_job(name: str, index: int | None, stack: ExitStack) -> tuple[JobRecord, dict[str, Path]]:
    """Return the record and the files of a job, copied to this machine if it ran elsewhere."""
    import tempfile

    from hpclaunch.api import find_job, update
    from hpclaunch.observe.job_timelines import brought, timeline_files
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

    handle = find_job(name)
    update([handle])  # whether it has failed since the last look
    record = handle.record if index is None else handle.index(index).record
    if record.array:
        raise BadInputError.case("timeline: array", record=record, first=min(record.array))
    with handle.connected() as host:
        files = timeline_files(host, handle.record, index)
        if not files:
            asked = [name for name in ("profile", "timeline") if record.request.get(name) is not None]
            case = "nothing recorded" if "profile" in asked else "none"
            case = "not yet" if asked and record.state not in FINAL_STATES else case
            raise BadInputError.case(f"timeline: {case}", record=record)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpclaunch-timeline-")))
        return record, brought(host, record, files, folder)


def _read(paths: Mapping[str, Path], record: JobRecord | None, *, strict: bool) -> list[TimelineFile]:
    """Read the files; of a folder's those that are no timeline are passed over with a note, unless
    ``strict``: then only those of ranks that ended before their first event."""
    from hpclaunch.observe.job_timelines import read_timelines
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES
    from hpclaunch.timeline.read_timeline import NoEventsError

    def left_out(error: BadInputError) -> None:
        if len(paths) == 1 or (strict and not isinstance(error, NoEventsError)):
            raise error
        click.echo(f"note: left out: {error.message}", err=True)

    try:
        return read_timelines(paths, left_out)
    except NoEventsError:
        if record is None or record.state in FINAL_STATES:
            raise
        raise BadInputError.case("timeline: not yet", record=record) from None


def _report(
    files: list[TimelineFile], record: JobRecord | None, options: dict[str, Any], paths: Mapping[str, Path]
) -> None:
    """Print the summary, and write the files that were requested."""
    from hpclaunch.observe.job_timelines import file_chunks, timeline_of
    from hpclaunch.timeline.timeline_summary import shown, summarised

    job = timeline_of(record, files)
    places, figures = _places(record), _figures(record)
    document = summarised(job, places, figures, record.id if record else None)
    if options["merge"]:
        if all(file.form == "flight-recorder" for file in files):
            raise BadInputError.case("timeline: not to be merged")
        from hpclaunch.timeline.trace_repair import merged

        _write(options["merge"], merged(job, lambda name: file_chunks(paths[name]), places))
        click.echo(f"note: {options['merge']} has all ranks; https://ui.perfetto.dev shows it", err=True)
    if options["html"]:
        from hpclaunch.timeline.timeline_summary import page

        _write(options["html"], [page(document)])
    show(document, shown)


def _places(record: JobRecord | None) -> Mapping[int, Place]:
    if record is None:
        return {}
    from hpclaunch.api import JobHandle
    from hpclaunch.observe.job_timelines import bound_places, rank_nodes
    from hpclaunch.timeline.job_timeline import Place

    verdict, nodes = record.binding, dict[int, str]()
    if verdict is None:
        try:
            handle = JobHandle(record)
            with handle.connected() as host:
                verdict = handle.binding()
                nodes = {} if verdict else rank_nodes(host, record)
        except HpclaunchError as error:
            click.echo(f"note: the ranks' nodes are not known: {error.message}", err=True)
    return {rank: Place(node) for rank, node in nodes.items()} | bound_places(verdict)


def _figures(record: JobRecord | None) -> tuple[AllreduceFigure, ...]:
    from hpclaunch.site.load_profile import load_site

    with suppress(BadInputError):  # a profile that has gone since
        return load_site(record.site).fabric.allreduce if record else ()
    return ()


def _repair(paths: Mapping[str, Path], target: Path) -> None:
    from hpclaunch.observe.job_timelines import file_chunks
    from hpclaunch.timeline.trace_repair import repaired

    if len(paths) != 1:
        raise click.UsageError("--repair takes one FILE")
    ((name, path),) = paths.items()
    if target.exists() and path.samefile(target):
        raise BadInputError(f"--repair {target}: this is the broken file itself", "name another one")

    def parts() -> Iterator[str]:
        try:
            yield from repaired(file_chunks(path))
        except BadInputError as error:
            raise BadInputError(f"{name}: {error.message}", error.hint) from None

    _write(target, parts())


def _write(path: Path, parts: Iterable[str]) -> None:
    """Write a file in parts; it has its name only when it is whole."""
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        with temporary.open("w", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(parts)
        temporary.replace(path)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
