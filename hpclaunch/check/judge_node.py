"""Verdicts on the node itself: GPUs, the fabric's plugin, the clock, space, and stripes on Lustre."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hpclaunch.check.check_report import Check
from hpclaunch.check.facts import NodeFacts, Outcome
from hpclaunch.remote.probe import GPU_LINES, MAX_CLOCK_OFFSET_S, MIN_FREE_BYTES, MIN_FREE_INODES
from hpclaunch.site.schema import SiteProfile


def format_bytes(count: int) -> str:
    """Write a number of bytes for reading, such as ``1.5 GiB``."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def judge_node(facts: NodeFacts, profile: SiteProfile | None) -> tuple[Check, ...]:
    """Judge everything that was asked of the node."""
    said = facts.node.answers() if facts.node else {}
    checks = [
        *(_gpus(facts, said, profile) if facts.gpu_tool and profile else ()),
        *(_plugin(facts.plugin, profile) if facts.plugin else ()),
        *_clock(said),
        *(
            check
            for folder, found in (said.get("folders") or {}).items()
            for check in _space(folder, found, facts.quotas.get(folder))
        ),
        *(_stripes(facts.stripes, profile) if facts.stripes else ()),
    ]
    return tuple(checks)


def gpu_names(tool: str, text: str) -> dict[int, str]:
    """Return the GPUs that a tool lists, by index."""
    names: dict[int, str] = {}
    for index, name in re.findall(GPU_LINES[tool], text, re.MULTILINE):
        names.setdefault(int(index), name.strip())
    return names


def _gpus(facts: NodeFacts, said: dict[str, Any], profile: SiteProfile) -> Iterator[Check]:
    """Hold the GPUs that are seen against those of the site's node."""
    tool = facts.gpu_tool or Outcome(exit_code=127)
    expected = len(profile.node.gpus) if profile.node else 0
    names = gpu_names(facts.gpu_tool_name, tool.stdout) if facts.gpu_tool_name else {}
    want = f"{profile.name} has {expected} a node"
    shown = ", ".join(f"{name}={value}" for name, value in (said.get("visible") or {}).items())
    if tool.exit_code == 127:
        evidence = f"there is no {facts.gpu_tool_name} here; {want}: this may be a login node"
        remedy = "run the check in a job: hpclaunch check --nodes N in an allocation"
        yield Check(name="gpus", status="unknown", evidence=evidence, remedy=remedy)
        return
    what = f"{facts.gpu_tool_name} lists {len(names)} GPUs"
    what += (
        f" ({', '.join(dict.fromkeys(names.values()))})"
        if names
        else f" ({tool.last_words() or tool.ending()})"
    )
    what += f"; {shown}" if shown else ""
    if len(names) >= expected:
        yield Check(name="gpus", status="have", evidence=f"{what}; {want}")
        return
    remedy = "ask for all GPUs of the node (--gpus-per-node), or report the node: a GPU may have fallen off"
    yield Check(name="gpus", status="missing", evidence=f"{what}; {want}", remedy=remedy)


def _plugin(outcome: Outcome, profile: SiteProfile | None) -> Iterator[Check]:
    """Whether NCCL or RCCL would find and load the network's plugin."""
    name, said = "fabric-plugin", outcome.answers()
    amd = profile is not None and profile.node is not None and profile.node.gpu_vendor == "amd"
    library = "aws-ofi-rccl" if amd else "aws-ofi-nccl"
    remedy = f"load the site's {library} (module, uenv or container); without it messages go by TCP, silently"
    if not said:
        evidence = f"loading the plugin {outcome.ending()}: {outcome.last_words()}"
        yield Check(name=name, status="missing", evidence=evidence, remedy=remedy)
    elif said.get("loaded") and said.get("table"):
        version = f"ncclNetPlugin_v{max(said['table'])}"
        yield Check(name=name, status="have", evidence=f"{said['loaded']} loads and has {version}")
    elif said.get("loaded"):
        evidence = f"{said['loaded']} loads, but is no network plugin: it has no ncclNetPlugin_v symbol"
        yield Check(name=name, status="missing", evidence=evidence, remedy=remedy)
    else:
        tried: dict[str, str] = said.get("tried") or {}
        # A file that is there but does not load names another library as the one it lacks.
        broken = [text for file, text in tried.items() if not text.startswith(f"{file}:")]
        evidence = broken[0] if broken else f"none of {', '.join(tried)} is found"
        yield Check(name=name, status="missing", evidence=evidence, remedy=remedy)


def _clock(said: dict[str, Any]) -> Iterator[Check]:
    """The node's clock against the one of the file system, which all nodes share."""
    if not said:
        return
    offset = said.get("fs_offset_s")
    if offset is None:
        evidence = f"no file can be written in {said.get('cwd')}: {said.get('fs_error')}"
        yield Check(name="clock", status="unknown", evidence=evidence)
    elif abs(offset) <= MAX_CLOCK_OFFSET_S:
        evidence = f"{said['host']} and its file system agree within {max(abs(offset), 0.01):.2g} s"
        yield Check(name="clock", status="have", evidence=evidence)
    else:
        way = "ahead of" if offset < 0 else "behind"
        evidence = f"the clock of {said['host']} is {abs(offset):.1f} s {way} its file system's"
        remedy = "report the node to the site: its time service (chrony, ntp) is off"
        yield Check(name="clock", status="missing", evidence=evidence, remedy=remedy)


def _space(folder: str, found: Any, quota: Outcome | None) -> Iterator[Check]:
    """Free space and inodes of a folder, its file system's or the user's quota, whichever is less."""
    if not isinstance(found, dict):
        evidence, remedy = f"{folder}: {found}", "name a folder that exists on this node"
        yield Check(name="space", status="missing", evidence=evidence, remedy=remedy)
        return
    left = parse_lustre_quota(quota.stdout) if quota and quota.exit_code == 0 else (None, None)
    free = min(found["free_bytes"], left[0] if left[0] is not None else found["free_bytes"])
    inodes = found["free_inodes"]
    if left[1] is not None:
        inodes = left[1] if inodes is None else min(inodes, left[1])
    where = f"{folder} ({found['filesystem']})"
    yield Check(
        name="space",
        status="have" if free >= MIN_FREE_BYTES else "missing",
        evidence=f"{where}: {format_bytes(free)} free",
        remedy="" if free >= MIN_FREE_BYTES else "delete or move files, or write to another file system",
    )
    if inodes is None:
        yield Check(name="inodes", status="have", evidence=f"{where}: the file system counts no inodes")
    else:
        enough = inodes >= MIN_FREE_INODES
        remedy = "pack small files (squashfs, a container, tar), or write to another file system"
        yield Check(
            name="inodes",
            status="have" if enough else "missing",
            evidence=f"{where}: {inodes} files more may be made",
            remedy="" if enough else remedy,
        )


def parse_lustre_quota(text: str) -> tuple[int | None, int | None]:
    """Return (bytes, files) that a user may still use, from ``lfs quota -q``; None where there is no limit.

    The columns are used kbytes, quota, limit, grace, used files, quota, limit, grace; a star marks what
    is over its quota, and a long path stands on a line of its own (man lfs-quota).
    """
    words = text.split()[1:]
    columns = [int(word.strip("*[]")) for word in words if re.fullmatch(r"\[?\d+\*?\]?", word)]
    if len(columns) < 6:
        return None, None
    kbytes, _, kbytes_limit, files, _, files_limit = columns[:6]
    space = (kbytes_limit - kbytes) * 1024 if kbytes_limit else None
    return space, files_limit - files if files_limit else None


def _stripes(outcome: Outcome, profile: SiteProfile | None) -> Iterator[Check]:
    """How new files here are striped over Lustre's servers, and what the site advises."""
    said = dict(re.findall(r"(stripe_count|stripe_size):\s*(-?\d+)", outcome.stdout))
    if not said:
        yield Check(name="stripes", status="unknown", evidence=f"lfs getstripe {outcome.ending()}")
        return
    storages = profile.storage.values() if profile else ()
    advice = next((storage.striping for storage in storages if storage.striping), None)
    count, size = said.get("stripe_count", "?"), int(said.get("stripe_size", "0"))
    evidence = f"new files in this folder get {count} stripes of {format_bytes(size)}"
    remedy = (
        advice or "one file a process: 1 stripe; one large file for all ranks: lfs setstripe -c -1 FOLDER"
    )
    yield Check(name="stripes", status="have", evidence=evidence, remedy=remedy)
