# ruff: noqa: UP006, UP035  (the interpreter of a node may be old)
"""Images of squashfs on a node: mounted by squashfuse where the node can, else unpacked by unsquashfs.

It goes to nodes with the modules of this folder that it imports, and runs on any Python from 3.6 on.
"""

import os
import shutil
import subprocess
from collections import Counter
from typing import Any, Dict, List, Tuple

from hpclaunch.remote.safe_unpack import FILE, FOLDER, HARD_LINK, LINK, Member, leads_out, shown
from hpclaunch.remote.stage_sources import Json, StageError, sha256_of, walk
from hpclaunch.remote.words import WORDS

_MOUNTERS = ("squashfuse_ll", "squashfuse")
_UNMOUNTERS = (("fusermount3", "-u"), ("fusermount", "-u"), ("umount",))


def need_program(path: str, may_mount: bool) -> None:
    """StageError where this node can neither mount nor unpack an image."""
    if shutil.which("unsquashfs") is None and not (may_mount and _mounters()):
        missing = "neither squashfuse with /dev/fuse to mount it, nor" if may_mount else "no"
        raise StageError(WORDS["no unsquashfs"].format(path, missing))


def _mounters() -> List[str]:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return []
    return [found for found in map(shutil.which, _MOUNTERS) if found]


def mount(image: str, target: str) -> bool:
    """Mount an image at a new folder ``target``; False where this node cannot, and the folder is gone."""
    os.mkdir(target, 0o700)
    for program in _mounters():
        done = subprocess.run(
            [program, image, target],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode == 0 and os.path.ismount(target):
            return True
    os.rmdir(target)
    return False


def unmount(target: str) -> None:
    """End what `mount` has begun; nothing where nothing is mounted."""
    for words in (*_UNMOUNTERS, *((*words, "-l" if words[0] == "umount" else "-z") for words in _UNMOUNTERS)):
        if not _mounted(target):
            return
        if shutil.which(words[0]):
            subprocess.call([*words, target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if _mounted(target):
        raise StageError(f"{target}: the image cannot be unmounted")


def _mounted(target: str) -> bool:
    """Also where the file system's process is dead, which makes every look at it fail."""
    real = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    with open("/proc/self/mountinfo", "rb") as file:  # man 5 proc: field 5 is the mount point, octal-escaped
        points = [line.split()[4].decode("unicode_escape") for line in file]
    return real.encode().decode("latin-1") in points


def unsquash(image: str, copy: str, keep_links: bool) -> Json:
    """Unpack an image to the new folder ``copy``; as `stage_copy.unpack`.

    unsquashfs makes the members, after its own list of them has shown that each name comes once and none
    leads out: before 4.5.1 it wrote through a link that a second member of the same name followed
    (CVE-2021-41072). What it made is judged by the rule of ``safe_unpack``.
    """
    _need_plain_names(image)
    words = ["unsquashfs", "-no-progress", "-no-xattrs", "-quiet", "-dest", copy, image]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        last = done.stdout.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise StageError(f"unsquashfs could not unpack the image: {' '.join(last) or done.returncode}")
    return _judged(copy, keep_links)


def _need_plain_names(image: str) -> None:
    done = subprocess.run(
        ["unsquashfs", "-ls", image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    lines = done.stdout.splitlines()
    names = [line for line in lines if line.startswith(b"squashfs-root")]
    if done.returncode != 0:
        raise StageError(f"unsquashfs cannot read the image: {shown(os.fsdecode((lines or [b''])[0]))}")
    name, times = Counter(names).most_common(1)[0] if names else (b"", 0)
    if times > 1:
        raise StageError(f"{shown(os.fsdecode(name))}: comes {times} times in the image")
    if any(b".." in name.split(b"/") for name in names):
        raise StageError("a name in the image leads out of it, by '..'")


def _judged(copy: str, keep_links: bool) -> Json:
    found = [member for member in walk(copy) if member.name != "."]
    links = {member.name: member.target for member in found if member.kind == LINK}
    if not keep_links:
        _need_links_inside(links)
    special = _drop_bits(copy, found)
    return {
        "files": dict(_content(copy, member) for member in found if member.kind != FOLDER),
        "bytes": sum(member.size for member in found),
        "count": len(found),
        "notes": [f"set-uid, set-gid or sticky bits dropped of {special:,} members"] * bool(special),
    }


def _drop_bits(copy: str, found: List[Member]) -> int:
    """Drop set-uid, set-gid and sticky bits; of how many members."""
    special = [member for member in found if member.mode & 0o7000 and member.kind in (FILE, FOLDER)]
    for member in special:
        os.chmod(os.path.join(copy, member.name), member.mode & 0o777)
    return len(special)


def _need_links_inside(links: Dict[str, str]) -> None:
    for name, target in links.items():
        if leads_out(name, links):
            raise StageError(WORDS["out of the image"].format(shown(name), shown(target)))


def _content(copy: str, member: Member) -> Tuple[str, Any]:
    """A name and what `stage_copy.verify` expects there."""
    if member.kind == LINK:
        return member.name, {"link": member.target}
    if member.kind not in (FILE, HARD_LINK):
        raise StageError(f"{shown(member.name)}: not a file, folder or link, but a {member.kind}")
    return member.name, sha256_of(os.path.join(copy, member.name))
