"""Judge one part of on_gpu.sh by the files that it left: ``judge.py PART FOLDER`` prints NAME VERDICT TEXT.

``passed`` is only said where torch itself sees GPUs; without one a part that runs is ``rehearsed``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

NEEDS_TWO = {"ddp", "distinct-gpus", "stacks-others"}
"""Findings that say nothing with one GPU."""
MEASURED_PER_PREDICTED = (0.9, 1.5)
"""Workspaces and the batch itself come on top of what is predicted."""


class Finding(NamedTuple):
    """A statement about a part, and whether it is as it should be."""

    name: str
    right: bool
    text: str


def read(file: Path) -> Any:
    """Return a JSON document."""
    return json.loads(file.read_text())


def address(text: str) -> str:
    """Return a PCI address as the kernel writes it; nvidia-smi writes the domain with 8 digits."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def listed(out: Path) -> list[str]:
    """Return the addresses of the GPUs that nvidia-smi has listed."""
    return [address(line.split(",")[2]) for line in (out / "gpus.csv").read_text().splitlines()]


def last_words(part: Path) -> str:
    """Return the last line that a part has printed."""
    lines = (part / "words.txt").read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing was printed")


def judge_topology(part: Path, out: Path) -> list[Finding]:
    """The GPUs read live, read from what was saved, and listed by nvidia-smi are the same."""
    live, saved = (
        sorted(address(gpu["bus_id"]) for gpu in read(part / file)["node"]["gpus"])
        for file in ("live.json", "saved.json")
    )
    right = live == saved == sorted(listed(out))
    return [
        Finding("topology", right, f"live {live}, saved {saved}, nvidia-smi {sorted(listed(out))}"),
    ]


def judge_visibility(part: Path, out: Path) -> list[Finding]:
    """Each rank takes the GPU that the plan gives it; CUDA itself tells the address."""
    text = (part / "log.txt").read_text()
    said = {each["rank"]: each for each in map(json.loads, re.findall(r"^sees (.*)$", text, re.MULTILINE))}
    ranks = read(part / "verify.json")["ranks"]
    on_gpu = any(each["buses"] for each in said.values())
    wrong = [
        f"rank {rank['rank']}: planned {rank['bus'] or 'none'}, got {said[rank['rank']]['takes']}"
        for rank in ranks
        if on_gpu and said[rank["rank"]]["takes"] != rank["bus"]
    ]
    bad = [f"rank {rank['rank']}: {rank['verdict']}" for rank in ranks if rank["verdict"] != "ok"]
    bad += [
        f"rank {rank}: no variable" for rank, each in said.items() if listed(out) and not each["variable"]
    ]
    taken = [each["takes"] for each in said.values() if each["takes"]]
    whole = len(said) == len(ranks) > 0
    return [
        Finding("visibility", whole and not wrong + bad, ", ".join(wrong + bad) or f"{len(said)} ranks"),
        Finding(
            "distinct-gpus",
            not on_gpu or len(set(taken)) == len(ranks),
            f"{len(set(taken))} GPUs are taken by {len(said)} ranks",
        ),
    ]


def judge_ddp(part: Path, out: Path) -> list[Finding]:
    """All ranks hold the same parameters, and the known sum is exact."""
    text = (part / "log.txt").read_text()
    said = re.search(r"^ddp backend (\S+) ranks (\d+) same (\d+) exact (\w+)$", text, re.MULTILINE)
    if said is None:
        return [Finding("ddp", False, last_words(part))]
    right = said[2] == said[3] and said[4] == "True"
    ways = sorted(set(re.findall(r"NCCL INFO.*?(?:via|Using network) (\S+)", text)))
    return [Finding("ddp", right, f"{said[0]}; NCCL: {', '.join(ways) or 'no line of it'}")]


def judge_check(part: Path, out: Path) -> list[Finding]:
    """Torch meets the requirements."""
    document = read(part / "check.json")
    wrong = [f"{each['name']}: {each['evidence']}" for each in document["checks"] if each["status"] != "have"]
    return [Finding("check", document["ok"], "; ".join(wrong) or f"{len(document['checks'])} checks")]


def judge_timeline(part: Path, out: Path) -> list[Finding]:
    """Every trace is read as Kineto's, with its five steps."""
    document = read(part / "timeline.json")
    files = document["files"]
    traces = len(list((part / "traces").iterdir()))
    right = document["steps"] == 5 and document["ranks"] == len(files) == traces
    kinds = sorted({each["format"] for each in files})
    return [
        Finding(
            "timeline",
            right and kinds == ["kineto"],
            f"{len(files)} traces ({', '.join(kinds)}), {document['steps']} steps of"
            f" {document['step_ms']['median']} ms, shares {document['shares']}",
        )
    ]


def judge_stacks(part: Path, out: Path) -> list[Finding]:
    """The rank that waits for its kernel is named with its line, and the other ranks wait for it."""
    document = read(part / "stacks.json")
    ranks = {each["rank"]: each for each in document["by_rank"]}
    last = ranks[max(ranks)]
    there = any(frame["function"] == "wait_for_the_kernel" for frame in last.get("stack") or ())
    left = set(re.findall(r"^\d+", (part / "after.txt").read_text(), re.MULTILINE))
    stayed = left & {str(each["pid"]) for each in ranks.values()}
    text = f"{document['finding']}; processes left on the GPU: {', '.join(sorted(stayed)) or 'none'}"
    waited = document["suspects"]
    return [
        Finding("stacks", there and not stayed, text),
        Finding("stacks-others", waited == [last["rank"]], f"the other ranks wait for {waited}"),
    ]


def judge_report(part: Path, out: Path) -> list[Finding]:
    """Each GPU was busy, its memory was seen, and its energy is known."""
    (node,) = read(part / "report.json")["by_node"]
    gpus = node["gpus"]
    lazy = [gpu["name"] for gpu in gpus if (gpu["busy"] or 0) < 50 or not gpu["memory_peak"]]
    energy = [f"{each['joules']:.0f} J ({each['how']})" for each in node["energy"]]
    used = ", ".join(f"{gpu['name']} {gpu['busy']} % {gpu['power_w']} W" for gpu in gpus)
    right = len(gpus) == len(listed(out)) and not lazy and (bool(energy) or not gpus)
    return [Finding("report", right, f"{used or 'no GPU'}; {'; '.join(energy) or 'no energy'}")]


def judge_memory(part: Path, out: Path) -> list[Finding]:
    """What torch has allocated at most is near the prediction."""
    predicted = read(part / "predict.json")["points"][0]["memory_gib"]
    measured = read(part / "steps.json")["allocated_gib"]
    if measured is None:
        return [Finding("memory", predicted > 0, f"predicted {predicted:.3f} GiB; nothing measured on a CPU")]
    low, high = MEASURED_PER_PREDICTED
    ratio = measured / predicted
    text = f"predicted {predicted:.3f} GiB, allocated {measured:.3f} GiB: {ratio:.2f} times"
    return [Finding("memory", low <= ratio <= high, f"{text} ({low} to {high} is right)")]


JUDGES: dict[str, Callable[[Path, Path], list[Finding]]] = {
    "topology": judge_topology,
    "visibility": judge_visibility,
    "ddp": judge_ddp,
    "check": judge_check,
    "timeline": judge_timeline,
    "stacks": judge_stacks,
    "report": judge_report,
    "memory": judge_memory,
}


def verdicts(name: str, out: Path) -> list[tuple[str, str, str]]:
    """Return name, verdict and text of each finding of a part."""
    part, torch = out / name, read(out / "torch.json")
    if torch["version"] is None and name != "topology":
        return [(name, "not-run", "PYTHON has no torch")]
    if (part / "status").read_text().strip() != "0":
        return [(name, "failed", f"a command failed: {last_words(part)}")]
    try:
        found = JUDGES[name](part, out)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return [(name, "failed", f"its outputs cannot be read: {error!r}")]
    return [(each.name, verdict(each, torch["gpus"]), text(each, torch["gpus"])) for each in found]


def verdict(finding: Finding, gpus: int) -> str:
    """Return what a finding shows with so many GPUs."""
    if finding.name in NEEDS_TWO and gpus == 1:
        return "not-run"
    if not finding.right:
        return "failed"
    return "passed" if gpus else "rehearsed"


def text(finding: Finding, gpus: int) -> str:
    """Return the words to it."""
    if finding.name in NEEDS_TWO and gpus == 1:
        return "needs 2 GPUs: 1 here"
    return finding.text if gpus else f"no GPU here: {finding.text}"


if __name__ == "__main__":
    for row in verdicts(sys.argv[1], Path(sys.argv[2])):
        print("\t".join(" ".join(cell.split()) for cell in row))
