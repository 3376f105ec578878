"""A folder's file system, as this machine reports it: type, stripes, quota, room, storage of nodes."""

import contextlib
import getpass
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.check.judge_node import least, parse_lustre_quota
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

SMALL_BYTES = 1 << 20
"""Smaller files are small ones (wiki.lustre.org, Lustre Striping Best Practices)."""
LARGE_BYTES = 1 << 30
"""Larger ones are large (the same page)."""


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
    sums["small_files"] += size < SMALL_BYTES
    sums["large_files"] += size > LARGE_BYTES
    if size > sums["largest_bytes"] or sums["largest"] is None:
        sums["largest_bytes"], sums["largest"] = size, path


_TOOL_LIMIT_S = 20.0


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
        path=path,
        where="this machine",
        kind=file_system(path)[0],
        free_bytes=room.f_bavail * room.f_frsize,
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
        answer = host.run(("lfs", *argv), timeout_s=_TOOL_LIMIT_S)
    except RefusedError:
        return ""
    return answer.stdout if answer.exit_code == 0 else ""
