"""From the facts about a folder to advice on how ranks should read it. Pure; each advice has its source."""

import shlex
from collections.abc import Iterator

import msgspec

from hpclaunch.check.io_facts import SMALL_BYTES, IoFacts, Stripes
from hpclaunch.json_document import Document
from hpclaunch.plural import counted
from hpclaunch.units import format_bytes

LUSTRE_WIKI = "https://wiki.lustre.org/Lustre_Striping_Best_Practices"
CSCS_GUIDE = "https://docs.cscs.ch/guides/storage/"
OUR_TRAINING = "docs/reference/training.md, --reading"
OUR_STAGING = "docs/how-to/data.md"
MANY_FILES = 10_000
"""From here on the files are many: opening each costs the metadata server several messages."""
_LOCAL_TYPES = ("ext4", "ext3", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "ramfs")
_MEMORY_TYPES = ("tmpfs", "ramfs")
_ROOM_FACTOR = 1.05
_SHARD_BYTES = 4 << 30
"""From here on a copy of all data in each rank's memory is too much on many nodes."""
_STRIPES_OF_LARGE_FILES = 8
_STRIPE_SIZE = "4M"


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


DOCUMENTS = {"advise-io": IoDocument}
"""Name of the schema -> its type."""


def advise_io(facts: IoFacts) -> list[Advice]:
    """Return the advice, most effective first."""
    found = [*_room(facts), *_pack(facts), *_stripe(facts), *_stage(facts), *_shard(facts)]
    if found:
        return found
    nothing = "these data can be read where they are"
    why = f"{_count(facts)} on {facts.file_system}"
    return [Advice(name="nothing", text=nothing, why=why, source=LUSTRE_WIKI)]


def is_local(facts: IoFacts) -> bool:
    """Whether the data are on a disk or in memory of this machine, and a job here reads them."""
    return facts.file_system in _LOCAL_TYPES and facts.local.where == "this machine"


def _guide(facts: IoFacts) -> str:
    """Return the source of what holds on every machine."""
    return f"{CSCS_GUIDE}, not {facts.site}'s own, which is not known here" if facts.site else CSCS_GUIDE


def has_many_small_files(facts: IoFacts) -> bool:
    """Whether there are many files, most of them small."""
    census = facts.census
    return census.files >= MANY_FILES and census.small_files > census.files / 2


def _count(facts: IoFacts) -> str:
    least = "" if facts.census.complete else "at least "
    return f"{least}{counted(facts.census.files, 'file', spec=',')}, {format_bytes(facts.census.bytes)}"


def _room(facts: IoFacts) -> Iterator[Advice]:
    """Where a packed copy would not fit."""
    if facts.free_files is not None and facts.free_files < facts.census.files:
        yield Advice(
            name="room",
            text="do not unpack a second copy here: pack first, and remove the files afterwards",
            why=f"{facts.free_files:,} more files may be made, and there are {facts.census.files:,}",
            source=facts.site_source or "lfs quota, statvfs(3)",
        )
    if facts.free_bytes is not None and facts.free_bytes < facts.census.bytes:
        yield Advice(
            name="room",
            text="write packed copies to another file system",
            why=f"{format_bytes(facts.free_bytes)} are left for {format_bytes(facts.census.bytes)} of data",
            source=facts.site_source or "lfs quota, statvfs(3)",
        )


def _pack(facts: IoFacts) -> Iterator[Advice]:
    if is_local(facts) or not has_many_small_files(facts):
        return
    path = facts.path.rstrip("/")
    image, archive = shlex.quote(f"{path}.sqsh"), shlex.quote(f"{path}.tar")
    yield Advice(
        name="pack",
        text="pack the files into one: a tar, or squashfs for a container (-B IMAGE:/data:image-src=/)",
        why=f"{_count(facts)}, {facts.census.small_files:,} of them below {SMALL_BYTES >> 20} MiB: each "
        "costs messages to the metadata server, which all users share",
        commands=(
            f"mksquashfs {shlex.quote(path)} {image}",
            f"tar -cf {archive} -C {shlex.quote(path)} .",
        ),
        source=_guide(facts),
    )


def _stripe(facts: IoFacts) -> Iterator[Advice]:
    site = f"; {facts.site} advises: {facts.site_striping}" if facts.site_striping else ""
    source = facts.site_source or LUSTRE_WIKI
    folder = shlex.quote(facts.path if facts.is_folder else facts.path.rpartition("/")[0] or ".")
    if has_many_small_files(facts) and _is_wide(facts.stripes):
        text, commands = _small_files(facts, folder)
        yield Advice(
            name="stripe",
            text=text,
            why=f"new files get several stripes, and most are small{site}",
            commands=commands,
            source=source,
        )
    if facts.census.large_files and _is_narrow(facts.largest_stripes):
        wide = f"-c {_STRIPES_OF_LARGE_FILES} -S {_STRIPE_SIZE}"
        file = shlex.quote(facts.census.largest or "")
        yield Advice(
            name="stripe",
            text=f"spread large files over {_STRIPES_OF_LARGE_FILES} servers where many ranks read them",
            why=f"{counted(facts.census.large_files, 'file', spec=',')} above 1 GiB, the largest "
            f"({format_bytes(facts.census.largest_bytes)}) on one server{site}",
            commands=(f"lfs setstripe {wide} {folder}", f"lfs migrate {wide} {file}"),
            source=source,
        )


def _small_files(facts: IoFacts, folder: str) -> tuple[str, tuple[str, ...]]:
    """Return the text and the commands; none of ours next to the site's own advice."""
    if facts.site_striping:
        return f"stripe new files here as {facts.site} advises", ()
    return "use one stripe per file for new files here", (f"lfs setstripe -c 1 {folder}",)


def _is_wide(stripes: Stripes | None) -> bool:
    """Whether small files get more than one stripe."""
    return stripes is not None and not stripes.progressive and stripes.count not in (0, 1)


def _is_narrow(stripes: Stripes | None) -> bool:
    """Whether a large file has one stripe only."""
    return stripes is not None and not stripes.progressive and stripes.count == 1


def _stage(facts: IoFacts) -> Iterator[Advice]:
    """Node-local copies pay where files are read more than once, as in every epoch."""
    local, needed = facts.local, facts.census.bytes
    fits = local.free_bytes is None or local.free_bytes >= needed * _ROOM_FACTOR
    if is_local(facts) or not facts.census.complete or not fits:
        return
    in_memory = local.kind in ("none", *_MEMORY_TYPES)
    too_much = in_memory and needed >= _SHARD_BYTES
    text = "stage the data to the nodes' own storage before the ranks start; each epoch then reads there"
    if in_memory:
        text = "stage only what is small: the nodes' own storage is their memory, which the job needs"
    if too_much:
        text = "do not stage so much: the nodes' own storage is their memory, which the job needs"
    room = "its room is checked when the job starts"
    if local.free_bytes is not None:
        room = f"{format_bytes(local.free_bytes)} are free there"
    yield Advice(
        name="stage",
        text=text,
        why=f"{format_bytes(needed)} for {local.path} ({local.where}); {room}",
        commands=() if too_much else (f"hpclaunch submit --stage {shlex.quote(facts.path)} ...",),
        source=f"{_guide(facts)}; {OUR_STAGING}",
    )


def _shard(facts: IoFacts) -> Iterator[Advice]:
    if facts.census.bytes < _SHARD_BYTES:
        return
    yield Advice(
        name="shard",
        text="let each rank read its own share of each epoch, not all data into its memory",
        why=f"{format_bytes(facts.census.bytes)} for each rank otherwise",
        commands=("hpclaunch submit ... mnist -- --reading shard",),
        source=OUR_TRAINING,
    )
