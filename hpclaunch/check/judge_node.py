"""Verdicts on the node itself: GPUs, the fabric's plugin, the clock, space, and stripes on Lustre."""

import re
from collections.abc import Iterator
from typing import Any

from hpclaunch.amounts import counted, format_bytes
from hpclaunch.check.check_report import Check, verdict
from hpclaunch.check.facts import NOT_FOUND, NodeFacts, Outcome
from hpclaunch.remote.probe import GPU_LINES, MAX_CLOCK_OFFSET_S, MIN_FREE_BYTES, MIN_FREE_INODES
from hpclaunch.site.schema import SiteProfile


def judge_node(facts: NodeFacts, profile: SiteProfile | None) -> tuple[Check, ...]:
    """Judge everything about the node."""
    answers = facts.node.answers() if facts.node else {}
    folders: dict[str, Any] = answers.get("folders") or {}
    tool = facts.gpu_tool
    checks = [_gpus(tool, facts.gpu_tool_name, answers, profile)] if tool and profile else []
    checks += [_plugin(facts.plugin, profile)] if facts.plugin else []
    checks += _clock(answers)
    for folder, found in folders.items():
        checks += _space(folder, found, facts.quotas.get(folder))
    checks += [_stripes(facts.stripes, profile)] if facts.stripes else ()
    return tuple(checks)


def gpu_names(tool: str, text: str) -> dict[int, str]:
    """Return the GPUs that a tool lists, by index."""
    names: dict[int, str] = {}
    for index, name in re.findall(GPU_LINES[tool], text, re.MULTILINE):
        names.setdefault(int(index), name.strip())
    return names


def _gpus(tool: Outcome, name: str, answers: dict[str, Any], profile: SiteProfile) -> Check:
    expected = len(profile.node.gpus) if profile.node else 0
    found: dict[str, Any] = {"tool": name, "expected": f"{profile.name} has {expected} per node"}
    if tool.exit_code == NOT_FOUND:
        return verdict("gpus: no tool", **found)
    names = gpu_names(name, tool.stdout)
    models = ", ".join(dict.fromkeys(names.values())) or tool.last_error_line() or tool.ending()
    hidden = ", ".join(f"{name}={value}" for name, value in (answers.get("visible") or {}).items())
    found |= {"count": counted(len(names), "GPU"), "visible": hidden and f"; {hidden}"}
    return verdict(f"gpus: {'all' if len(names) >= expected else 'too few'}", models=models, **found)


def _plugin(outcome: Outcome, profile: SiteProfile | None) -> Check:
    answers = outcome.answers()
    if answers.get("loaded") and answers.get("table"):
        return verdict("fabric-plugin: loads", loaded=answers["loaded"], version=max(answers["table"]))
    amd = profile is not None and profile.node is not None and profile.node.gpu_vendor == "amd"
    library = "aws-ofi-rccl" if amd else "aws-ofi-nccl"
    if not answers:
        why = f"loading the plugin {outcome.ending()}: {outcome.last_error_line()}"
    elif answers.get("loaded"):
        why = f"{answers['loaded']} loads, but is not a network plugin: it has no ncclNetPlugin_v symbol"
    else:
        why = _why_not_loaded(answers.get("tried") or {})
    return verdict("fabric-plugin: does not load", why=why, library=library)


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
        yield verdict("clock: not written", cwd=answers.get("cwd"), error=answers.get("fs_error"))
    elif abs(offset) <= MAX_CLOCK_OFFSET_S:
        yield verdict("clock: right", host=answers["host"], offset=max(abs(offset), 0.01))
    else:
        way = "ahead of" if offset < 0 else "behind"
        yield verdict("clock: wrong", host=answers["host"], offset=abs(offset), way=way)


def _space(folder: str, found: Any, quota: Outcome | None) -> Iterator[Check]:
    """Judge a folder's free space and inodes: the lower of the file system's and the user's quota."""
    if not isinstance(found, dict):
        yield verdict("space: no folder", folder=folder, why=found)
        return
    quota_text = quota.stdout if quota and quota.exit_code == 0 else ""
    quota_bytes, quota_files = parse_lustre_quota(quota_text)
    where = f"{folder} ({found['filesystem']})"
    free, inodes = least(found["free_bytes"], quota_bytes) or 0, least(found["free_inodes"], quota_files)
    enough = "enough" if free >= MIN_FREE_BYTES else "too little"
    yield verdict(f"space: {enough}", where=where, free=format_bytes(free))
    room = "not counted" if inodes is None else "enough" if inodes >= MIN_FREE_INODES else "too few"
    yield verdict(f"inodes: {room}", where=where, inodes=inodes)


def least(*limits: int | None) -> int | None:
    """Return the lowest limit; None: there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


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


def _stripes(outcome: Outcome, profile: SiteProfile | None) -> Check:
    """Report how new files here are striped over Lustre's servers, with the site's advice."""
    stripes = dict(re.findall(r"(stripe_count|stripe_size):\s*(-?\d+)", outcome.stdout))
    if not stripes:
        return verdict("stripes: not read", ending=outcome.ending())
    storages = profile.storage.values() if profile else ()
    advice = next((storage.striping for storage in storages if storage.striping), None)
    count, size = stripes.get("stripe_count", "?"), format_bytes(int(stripes.get("stripe_size", "0")))
    usual = "one file per process: 1 stripe; one large file for all ranks: lfs setstripe -c -1 FOLDER"
    return verdict("stripes: read", count=count, size=size, advice=advice or usual)
