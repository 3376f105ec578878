"""From the facts about a folder to advice on how ranks should read it. Pure; each advice has its source."""

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from hpclaunch.check.io_facts import IoFacts, Stripes
from hpclaunch.errors import case_texts
from hpclaunch.json_document import Document
from hpclaunch.plural import counted, format_bytes

_GUIDE = "https://docs.cscs.ch/guides/storage/"
"""Has what holds on every machine."""
MANY_FILES = 10_000
"""From here on the files are many: opening each costs the metadata server several messages."""
_LOCAL_TYPES = ("ext4", "ext3", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "ramfs")
_MEMORY_TYPES = ("tmpfs", "ramfs")
_ROOM_FACTOR = 1.05
_SHARD_BYTES = 4 << 30
"""From here on a copy of all data in each rank's memory is too much on many nodes."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do, or not to do."""

    name: str
    text: str
    why: str
    commands: tuple[str, ...] = ()
    source: str


class IoDocument(Document, frozen=True, kw_only=True):
    """The facts read about the files, and the advice, most effective first."""

    facts: IoFacts
    advice: tuple[Advice, ...]


def advise_io(facts: IoFacts) -> list[Advice]:
    """Return the advice, most effective first."""
    found = [_advice(case, facts) for case in _cases(facts)]
    return found or [_advice("nothing", facts)]


def is_local(facts: IoFacts) -> bool:
    """Whether the data are on a disk or in memory of this machine, and a job here reads them."""
    return facts.file_system in _LOCAL_TYPES and facts.local.where == "this machine"


def has_many_small_files(facts: IoFacts) -> bool:
    """Whether there are many files, most of them small."""
    census = facts.census
    return census.files >= MANY_FILES and census.small_files > census.files / 2


def _cases(facts: IoFacts) -> Iterator[str]:
    census = facts.census
    if facts.free_files is not None and facts.free_files < census.files:
        yield "room: files"
    if facts.free_bytes is not None and facts.free_bytes < census.bytes:
        yield "room: bytes"
    if has_many_small_files(facts) and not is_local(facts):
        yield "pack"
    if has_many_small_files(facts) and _stripes(facts.stripes) not in (0, 1):
        # No commands of ours next to the site's own advice.
        yield "stripe: as advised" if facts.site_striping else "stripe: small files"
    yield from _large(facts)


def _large(facts: IoFacts) -> Iterator[str]:
    census, local = facts.census, facts.local
    if census.large_files and _stripes(facts.largest_stripes) == 1:
        yield "stripe: large files"
    # Node-local copies pay where files are read more than once, as in every epoch.
    fits = local.free_bytes is None or local.free_bytes >= census.bytes * _ROOM_FACTOR
    if not is_local(facts) and census.complete and fits:
        in_memory = local.kind in ("none", *_MEMORY_TYPES)
        much = "stage: too much" if census.bytes >= _SHARD_BYTES else "stage: little memory"
        yield much if in_memory else "stage: on disk"
    if census.bytes >= _SHARD_BYTES:
        yield "shard"


def _stripes(stripes: Stripes | None) -> int:
    """Return how many each file gets; 0: not known, or that depends on its size."""
    return 0 if stripes is None or stripes.progressive else stripes.count


def _advice(case: str, facts: IoFacts) -> Advice:
    name, texts = case.partition(":")[0], case_texts("check/io_advice.yaml", case, **_values(facts))
    if facts.site_source and name in ("room", "stripe"):
        texts["source"] = facts.site_source
    return Advice(name=name, **texts | {"commands": tuple(texts.get("commands", ()))})


def _values(facts: IoFacts) -> dict[str, Any]:
    census, local, path = facts.census, facts.local, facts.path.rstrip("/")
    least, size = "" if census.complete else "at least ", format_bytes(census.bytes)
    room = "its room is checked when the job starts"
    if local.free_bytes is not None:
        room = f"{format_bytes(local.free_bytes)} are free there"
    return {
        **{"facts": facts, "census": census, "local": local, "size": size, "room": room},
        "count": f"{least}{counted(census.files, 'file', spec=',')}, {size}",
        "free": format_bytes(facts.free_bytes or 0),
        "path": shlex.quote(path),
        "data": shlex.quote(facts.path),
        "image": shlex.quote(f"{path}.sqsh"),
        "archive": shlex.quote(f"{path}.tar"),
        "folder": shlex.quote(facts.path if facts.is_folder else facts.path.rpartition("/")[0] or "."),
        "file": shlex.quote(census.largest or ""),
        "large": counted(census.large_files, "file", spec=","),
        "largest": format_bytes(census.largest_bytes),
        "advised": f"; {facts.site} advises: {facts.site_striping}" if facts.site_striping else "",
        "guide": _GUIDE + (f", not {facts.site}'s own, which is not known here" if facts.site else ""),
    }
