"""A folder's file system, as this machine reports it, and advice on how ranks should read it.

Type, stripes, quota, room, storage of nodes; each advice has its source.
"""

import contextlib
import getpass
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.amounts import counted, format_bytes
from hpclaunch.check.judge_node import least, parse_lustre_quota
from hpclaunch.errors import BadInputError, RefusedError, case_texts
from hpclaunch.host.host_interface import Host
from hpclaunch.json_document import Document
from hpclaunch.package_data import package_constants
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

LIMIT = package_constants("check/limits.yaml", "io")


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and sizes of the files below a folder, or of one file."""

    files: int = 0
    folders: int = 0
    bytes: int = 0
    small_files: int = 0
    large_files: int = 0
    largest_bytes: int = 0
    largest: str | None = None
    most_in_a_folder: int = 0
    unreadable: int = 0
    seconds: float = 0.0
    complete: bool = True


def take_census(path: str, limit_s: float, clock: Callable[[], float] = time.monotonic) -> Census:
    """Count what is below ``path``, following no links, for ``limit_s`` at most. Raises BadInputError."""
    if not os.path.lexists(path):
        raise BadInputError(f"{path}: does not exist", "name a folder or a file")
    start, sums = clock(), msgspec.structs.asdict(Census())
    waiting = [path] if os.path.isdir(path) else []
    if not waiting and not os.path.isfile(path):
        raise BadInputError(f"{path}: neither a folder nor a file", "name what a job reads")
    if not waiting:
        _count_file(path, os.stat(path).st_size, sums)
    while waiting and clock() - start <= limit_s:
        waiting += _count_folder(waiting.pop(), sums)
    return Census(**sums | {"seconds": clock() - start, "complete": not waiting})


def _count_folder(path: str, sums: dict[str, Any]) -> list[str]:
    """Add its entries to the sums of a census; return the folders among them."""
    inner, entries = [], 0
    try:
        with os.scandir(path) as listing:
            for entry in listing:
                entries += 1
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    _count_file(entry.path, entry.stat(follow_symlinks=False).st_size, sums)
    except OSError:
        sums["unreadable"] += 1
    sums["folders"] += 1
    sums["most_in_a_folder"] = max(sums["most_in_a_folder"], entries)
    return inner


def _count_file(path: str, size: int, sums: dict[str, Any]) -> None:
    sums["files"] += 1
    sums["bytes"] += size
    sums["small_files"] += size < LIMIT.small_bytes
    sums["large_files"] += size > LIMIT.large_bytes
    if size > sums["largest_bytes"] or sums["largest"] is None:
        sums["largest_bytes"], sums["largest"] = size, path


class Stripes(msgspec.Struct, frozen=True, kw_only=True):
    """How Lustre spreads a file, or new files of a folder, over its servers."""

    count: int
    size: int
    progressive: bool = False


class LocalStorage(msgspec.Struct, frozen=True, kw_only=True):
    """Storage of a compute node, or of this machine."""

    path: str
    where: str
    kind: str = "unknown"
    free_bytes: int | None = None


class IoFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that an advice is made of."""

    path: str
    is_folder: bool
    census: Census
    file_system: str
    mount: str
    stripes: Stripes | None = None
    largest_stripes: Stripes | None = None
    free_bytes: int | None = None
    free_files: int | None = None
    quota_read: bool = False
    local: LocalStorage
    site: str | None = None
    site_striping: str | None = None
    site_source: str | None = None


def gather_io(host: Host, path: str, profile: SiteProfile | None, limit_s: float) -> IoFacts:
    """Read the facts about ``path`` here; ``limit_s``: seconds for counting. Raises BadInputError."""
    census = take_census(path, limit_s)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    kind, mount = file_system(folder)
    stripes = parse_stripes(_lfs(host, "getstripe", "-d", folder))
    limits = _lustre_quotas(host, folder) if stripes else []
    room = os.statvfs(folder)
    striping, source = _site_advice(profile)
    return IoFacts(
        path=path,
        is_folder=os.path.isdir(path),
        census=census,
        file_system="lustre" if stripes else kind,
        mount=mount,
        stripes=stripes,
        largest_stripes=_largest_stripes(host, census) if stripes else None,
        free_bytes=least(room.f_bavail * room.f_frsize, *(space for space, _ in limits)),
        free_files=least(room.f_favail if room.f_files else None, *(files for _, files in limits)),
        quota_read=any(limit != (None, None) for limit in limits),
        local=local_storage(profile),
        site=profile.name if profile else None,
        site_striping=striping,
        site_source=source,
    )


def _largest_stripes(host: Host, census: Census) -> Stripes | None:
    return parse_stripes(_lfs(host, "getstripe", census.largest)) if census.largest else None


def _site_advice(profile: SiteProfile | None) -> tuple[str | None, str | None]:
    """The site's advice on striping, and the page that has it."""
    storages = profile.storage.values() if profile else ()
    advised = next((storage for storage in storages if storage.striping), None)
    if profile is None or advised is None:
        return None, None
    source = profile.sources.get(advised.source or "")
    return advised.striping, source.url if source else None


def file_system(folder: str) -> tuple[str, str]:
    """Type and mount point of the file system of ``folder``."""
    import psutil  # this command only

    try:
        mounts = psutil.disk_partitions(all=True)
    except OSError:
        return "unknown", "/"
    path, found = Path(folder).resolve(), ("unknown", Path("/"))
    for mount in mounts:  # later mounts hide earlier ones
        point = Path(mount.mountpoint)
        if path.is_relative_to(point) and len(point.parts) >= len(found[1].parts):
            found = mount.fstype, point
    return found[0], str(found[1])


def parse_stripes(text: str) -> Stripes | None:
    """Read what ``lfs getstripe`` prints of a folder or a file; None where it has no stripes."""
    counts = re.findall(r"\bl?m?m?_?stripe_count:\s*(-?\d+)", text)
    sizes = re.findall(r"\bl?m?m?_?stripe_size:\s*(\d+)", text)
    if not counts or not sizes:
        return None
    return Stripes(count=int(counts[0]), size=int(sizes[0]), progressive="lcm_" in text or len(counts) > 1)


def local_storage(profile: SiteProfile | None) -> LocalStorage:
    """The storage of the site's nodes, or where no site is named or its node unknown, of this machine."""
    node = profile.node if profile else None
    if profile and node and not site_scheduler(profile).starts_at_once:
        place = node.local_scratch
        return LocalStorage(
            path=place or "/tmp",  # noqa: S108
            where=f"nodes of {profile.name}",
            kind="unknown" if place else "none",
        )
    path = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108
    room = os.statvfs(path)
    return LocalStorage(
        path=path, where="this machine", kind=file_system(path)[0], free_bytes=room.f_bavail * room.f_frsize
    )


def _lustre_quotas(host: Host, folder: str) -> list[tuple[int | None, int | None]]:
    """Return the bytes and files that this user and its groups may still use."""
    import grp

    groups = []
    for number in {os.getgid(), *os.getgroups()}:
        with contextlib.suppress(KeyError):  # it has no name
            groups.append(grp.getgrgid(number).gr_name)
    owners = [("-u", getpass.getuser()), *(("-g", name) for name in sorted(groups))]
    return [parse_lustre_quota(_lfs(host, "quota", "-q", *owner, folder)) for owner in owners]


def _lfs(host: Host, *argv: str) -> str:
    """The output of ``lfs``; empty where there is none, or it fails."""
    try:
        answer = host.run(("lfs", *argv), timeout_s=LIMIT.tool_limit_s)
    except RefusedError:
        return ""
    return answer.stdout if answer.exit_code == 0 else ""


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
    return facts.file_system in LIMIT.local_types and facts.local.where == "this machine"


def has_many_small_files(facts: IoFacts) -> bool:
    """Whether there are many files, most of them small."""
    census = facts.census
    return census.files >= LIMIT.many_files and census.small_files > census.files / 2


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
    fits = local.free_bytes is None or local.free_bytes >= census.bytes * LIMIT.room_factor
    if not is_local(facts) and census.complete and fits:
        in_memory = local.kind in ("none", *LIMIT.memory_types)
        much = "stage: too much" if census.bytes >= LIMIT.shard_bytes else "stage: little memory"
        yield much if in_memory else "stage: on disk"
    if census.bytes >= LIMIT.shard_bytes:
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
        "guide": LIMIT.guide + (f", not {facts.site}'s own, which is not known here" if facts.site else ""),
    }
