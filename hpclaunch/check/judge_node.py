"""Verdicts on the node itself: GPUs, the fabric's plugin, the clock, space, and stripes on Lustre."""

import re
from collections.abc import Iterator
from typing import Any

from hpclaunch.check.check_report import Check, have, missing, unknown
from hpclaunch.check.facts import NOT_FOUND, NodeFacts, Outcome
from hpclaunch.plural import counted
from hpclaunch.remote.probe import GPU_LINES, MAX_CLOCK_OFFSET_S, MIN_FREE_BYTES, MIN_FREE_INODES
from hpclaunch.site.schema import SiteProfile
from hpclaunch.units import format_bytes


def judge_node(facts: NodeFacts, profile: SiteProfile | None) -> tuple[Check, ...]:
    """Judge everything about the node."""
    answers = facts.node.answers() if facts.node else {}
    folders: dict[str, Any] = answers.get("folders") or {}
    checks = [
        *(_gpus(facts, answers, profile) if facts.gpu_tool and profile else ()),
        *(_plugin(facts.plugin, profile) if facts.plugin else ()),
        *_clock(answers),
    ]
    for folder, found in folders.items():
        checks += _space(folder, found, facts.quotas.get(folder))
    checks += _stripes(facts.stripes, profile) if facts.stripes else ()
    return tuple(checks)


def gpu_names(tool: str, text: str) -> dict[int, str]:
    """Return the GPUs that a tool lists, by index."""
    names: dict[int, str] = {}
    for index, name in re.findall(GPU_LINES[tool], text, re.MULTILINE):
        names.setdefault(int(index), name.strip())
    return names


def _gpus(facts: NodeFacts, answers: dict[str, Any], profile: SiteProfile) -> Iterator[Check]:
    tool = facts.gpu_tool or Outcome(exit_code=NOT_FOUND)
    expected = len(profile.node.gpus) if profile.node else 0
    site_has = f"{profile.name} has {expected} per node"
    if tool.exit_code == NOT_FOUND:
        evidence = f"there is no {facts.gpu_tool_name} here; {site_has}: this may be a login node"
        remedy = "run the check in a job: hpclaunch check --nodes N in an allocation"
        yield unknown("gpus", evidence, remedy)
        return
    names = gpu_names(facts.gpu_tool_name, tool.stdout) if facts.gpu_tool_name else {}
    models = ", ".join(dict.fromkeys(names.values())) or tool.last_error_line() or tool.ending()
    visible = _visible_devices(answers)
    evidence = f"{facts.gpu_tool_name} lists {counted(len(names), 'GPU')} ({models}){visible}; {site_has}"
    if len(names) >= expected:
        yield have("gpus", evidence)
        return
    remedy = "request all GPUs of the node (--gpus-per-node), or report the node: a GPU may have failed"
    yield missing("gpus", evidence, remedy)


def _visible_devices(answers: dict[str, Any]) -> str:
    """Return the variables that hide GPUs, as a part of a sentence; empty where none is set."""
    visible = ", ".join(f"{name}={value}" for name, value in (answers.get("visible") or {}).items())
    return f"; {visible}" if visible else ""


def _plugin(outcome: Outcome, profile: SiteProfile | None) -> Iterator[Check]:
    """Judge whether NCCL or RCCL can find and load the network's plugin."""
    name, answers = "fabric-plugin", outcome.answers()
    if answers.get("loaded") and answers.get("table"):
        version = f"ncclNetPlugin_v{max(answers['table'])}"
        yield have(name, f"{answers['loaded']} loads and has {version}")
        return
    amd = profile is not None and profile.node is not None and profile.node.gpu_vendor == "amd"
    library = "aws-ofi-rccl" if amd else "aws-ofi-nccl"
    remedy = f"load the site's {library} (module, uenv or container); without it messages go by TCP, silently"
    if not answers:
        evidence = f"loading the plugin {outcome.ending()}: {outcome.last_error_line()}"
    elif answers.get("loaded"):
        evidence = f"{answers['loaded']} loads, but is not a network plugin: it has no ncclNetPlugin_v symbol"
    else:
        evidence = _why_not_loaded(answers.get("tried") or {})
    yield missing(name, evidence, remedy)


def _why_not_loaded(tried: dict[str, str]) -> str:
    """Return why no plugin loaded; a file that exists but does not load lacks another library."""
    broken = [message for file, message in tried.items() if not message.startswith(f"{file}:")]
    return broken[0] if broken else f"none of {', '.join(tried)} is found"


def _clock(answers: dict[str, Any]) -> Iterator[Check]:
    """Compare the node's clock with the file system's, which all nodes share."""
    if not answers:
        return
    offset = answers.get("fs_offset_s")
    if offset is None:
        yield unknown("clock", f"no file can be written in {answers.get('cwd')}: {answers.get('fs_error')}")
    elif abs(offset) <= MAX_CLOCK_OFFSET_S:
        evidence = f"{answers['host']} and its file system agree within {max(abs(offset), 0.01):.2g} s"
        yield have("clock", evidence)
    else:
        way = "ahead of" if offset < 0 else "behind"
        evidence = f"the clock of {answers['host']} is {abs(offset):.1f} s {way} its file system's"
        remedy = "report the node to the site: its time service (chrony, ntp) does not work"
        yield missing("clock", evidence, remedy)


def _space(folder: str, found: Any, quota: Outcome | None) -> Iterator[Check]:
    """Judge a folder's free space and inodes: the lower of the file system's and the user's quota."""
    if not isinstance(found, dict):
        evidence, remedy = f"{folder}: {found}", "name a folder that exists on this node"
        yield missing("space", evidence, remedy)
        return
    quota_text = quota.stdout if quota and quota.exit_code == 0 else ""
    quota_bytes, quota_files = parse_lustre_quota(quota_text)
    where = f"{folder} ({found['filesystem']})"
    yield _free_bytes(where, least(found["free_bytes"], quota_bytes) or 0)
    yield _free_inodes(where, least(found["free_inodes"], quota_files))


def least(*limits: int | None) -> int | None:
    """Return the lowest limit; None: there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def _free_bytes(where: str, free: int) -> Check:
    evidence = f"{where}: {format_bytes(free)} free"
    if free >= MIN_FREE_BYTES:
        return have("space", evidence)
    remedy = "delete or move files, or write to another file system"
    return missing("space", evidence, remedy)


def _free_inodes(where: str, inodes: int | None) -> Check:
    if inodes is None:
        return have("inodes", f"{where}: the file system counts no inodes")
    evidence = f"{where}: room for {inodes} more files"
    if inodes >= MIN_FREE_INODES:
        return have("inodes", evidence)
    remedy = "pack small files (squashfs, a container, tar), or write to another file system"
    return missing("inodes", evidence, remedy)


def parse_lustre_quota(text: str) -> tuple[int | None, int | None]:
    """Return (bytes, files) that a user may still use, from ``lfs quota -q``; None where there is no limit.

    The columns are used kbytes, quota, limit, grace, used files, quota, limit, grace. A star marks a value
    over its quota, and a long path has its own line (man lfs-quota).
    """
    words = text.split()[1:]
    columns = [int(word.strip("*[]")) for word in words if re.fullmatch(r"\[?\d+\*?\]?", word)]
    if len(columns) < 6:
        return None, None
    kbytes, _, kbytes_limit, files, _, files_limit = columns[:6]
    space = (kbytes_limit - kbytes) * 1024 if kbytes_limit else None
    return space, files_limit - files if files_limit else None


def _stripes(outcome: Outcome, profile: SiteProfile | None) -> Iterator[Check]:
    """Report how new files here are striped over Lustre's servers, with the site's advice."""
    stripes = dict(re.findall(r"(stripe_count|stripe_size):\s*(-?\d+)", outcome.stdout))
    if not stripes:
        yield unknown("stripes", f"lfs getstripe {outcome.ending()}")
        return
    storages = profile.storage.values() if profile else ()
    advice = next((storage.striping for storage in storages if storage.striping), None)
    count, size = stripes.get("stripe_count", "?"), int(stripes.get("stripe_size", "0"))
    evidence = f"new files in this folder get {count} stripes of {format_bytes(size)}"
    remedy = (
        advice or "one file per process: 1 stripe; one large file for all ranks: lfs setstripe -c -1 FOLDER"
    )
    yield have("stripes", evidence, remedy)
