"""Whether a ported script starts the same programs: both scripts are run where nothing but stubs is.

    python -m benchmarks.port_run FOLDER [--show NAME] [--to SITE] [--set SET] [--jobs N] [--keep DIR]

``FOLDER`` holds scripts under the names of ``benchmarks/data/port_scripts*.yaml``, as for
``benchmarks/port.py``; of those files only the machine of a script is read here. Scripts with other names are
judged, too. Nobody's facts are needed: the old script and the new one are run, each in a sandbox whose
commands write down how they were called (``port_parts/sandbox.py``), and what the innermost programs got is
compared: arguments, variables that the script sets, folder, number of ranks, image, stdin, and the file that
holds their output.

A port is

- equal, where each program of the old script is started in the new one with all that;
- named, where each difference is named by the list of things to do: its words, its variable, or its line;
- reported, where some differences are named only by the report on the lines (left out, or changed, with why);
- silent, where one is named nowhere;
- not run, where the old script ends before it starts a program (it looks for files that are not here, or for
  arguments), port refuses it, or the new script needs more than itself.

It is a generous judge: something to do that names the line of a launch names all that is wrong with its
words. Scheduler and machine are made up; numbers of nodes, ranks and GPUs are those that hpclaunch reads in
the directives, so that a mistake there is not seen, and one GPU of a node is as good as another. What modules
set, what sourced files and other programs do, and what files hold is not known: a file that a script sources
is empty, and a program prints a number.

It needs Linux, and root or user namespaces. Scripts that are not ours run with an empty root folder, no
network, as nobody, for at most 20 s; still, do it on a machine that you can lose.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec
import yaml

from benchmarks.port import TARGETS, read_facts
from hpclaunch.errors import HpclaunchError
from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_script import site_of
from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.site.load_profile import load_all
from hpclaunch.site.schema import SiteProfile
from hpclaunch.text_table import text_table

PARTS = Path(__file__).parent / "port_parts"
FOLDER = "/home/user/job"
"""Where jobs are submitted."""
JOB = "4242"
INDEX = "1"
"""The index of the array's job that is run."""
LIMIT_S = 20
KEPT: list[Path] = []
"""The folder of what scripts did, if it is kept."""
ROUNDS = 8
"""How often a script is run again, with what the shell missed: programs, folders, files that it sources."""

By = Literal["to do", "report", ""]
Verdict = Literal["equal", "named", "reported", "silent", "not run"]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was started."""

    argv: tuple[str, ...]
    kind: str
    cwd: str
    line: int | None
    ranks: int | None
    env: dict[str, str]
    chain: list[dict[str, str]]
    stdin: str
    number: int
    out: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The program, by its path from the folder it runs in, and its arguments."""
        program = self.argv[0]
        if "/" in program and (program.startswith("/home/user/") or not program.startswith("/")):
            program = os.path.relpath(os.path.join(self.cwd, program), self.cwd)
            program = program if program.startswith("..") else f"./{program}"
        unbuffered = program.startswith("python") and self.argv[1:2] == ("-u",)  # as torchrun starts it
        return (program, *self.argv[1 + unbuffered :])

    @property
    def image(self) -> str:
        """The container around it; empty: none."""
        return next((each["image"] for each in self.chain if each["kind"] == "container"), "")


class Ran(NamedTuple):
    """What a script did."""

    launches: tuple[Launch, ...]
    files: dict[str, list[int]]
    """File -> the numbers of the programs whose output it has."""
    code: int | str
    stderr: str
    unset: dict[str, str]
    """Variables that the submitting shell must have, with made-up values."""

    def output_of(self, launch: Launch) -> set[str]:
        """Return the files that hold the output of a program."""
        return {name for name, numbers in self.files.items() if launch.number in numbers} | (
            {launch.out} - {""}
        )


class Sizes(NamedTuple):
    """What the directives of a script request, with what is assumed where they request nothing."""

    kind: str
    nodes: int
    tasks: int | None
    per_node: int | None
    cpus: int | None
    gpus: int
    array: bool
    name: str


class Difference(NamedTuple):
    """A point in which the programs do not get the same, and where port names it."""

    what: str
    by: By


ARRAYS = {
    "slurm": r"(^| )(--array|-a[ =\d])",
    "pbs": r"(^| )(-J \d|-t \d+-)",
    "lsf": r"(^| )-J \S+\[",
    "sge": r"(^| )-t \d",
}
"""Scheduler -> the words of directives that request an array."""


def sizes_of(text: str, site: SiteProfile | None) -> Sizes:
    """Return the sizes of a script's job."""
    script = read_script(text)
    asked = script.reader.requested(script.components[0]) if script.reader else RequestedResources()
    kind = script.kind or (site.scheduler.kind if site else "slurm")
    value = {
        name: getattr(asked, name).value if getattr(asked, name) else None for name in asked.__struct_fields__
    }
    nodes = value["nodes"] or (
        -(-value["tasks"] // value["tasks_per_node"]) if value["tasks"] and value["tasks_per_node"] else 1
    )
    gpus = value["gpus_per_node"] or (value["gpus"] and value["gpus"] // nodes)
    each = value["tasks_per_node"] or (value["tasks"] and value["tasks"] // nodes) or 1
    gpus = gpus or (value["gpus_per_task"] and value["gpus_per_task"] * each)
    whole = len(site.node.gpus) if site and site.node else 4
    words = " ".join(one.text for one in script.active_directives)
    array = re.search(ARRAYS.get(kind, "(?!)"), words) is not None
    name = next(
        (one.value for one in script.active_directives if one.name in ("job-name", "J", "N") and one.value),
        "job",
    )
    return Sizes(
        kind,
        nodes,
        value["tasks"],
        value["tasks_per_node"],
        value["cpus_per_task"],
        gpus or whole,
        array,
        name.partition("[")[0],
    )


def node_names(sizes: Sizes) -> list[str]:
    """Return the names of the job's nodes."""
    return [f"node{number + 1:04d}" for number in range(min(sizes.nodes, 4096))]


def variables(sizes: Sizes) -> dict[str, str]:
    """Return the variables that the scheduler sets, and those by which the stubs know the job."""
    nodes, names = sizes.nodes, node_names(sizes)
    listed = f"node[0001-{nodes:04d}]" if nodes > 1 else "node0001"
    per_node = sizes.per_node or (-(-sizes.tasks // nodes) if sizes.tasks else None)
    tasks = sizes.tasks or (per_node and per_node * nodes)
    slots = tasks or nodes
    facts = {
        **sizes._asdict(),
        "job": JOB,
        "folder": FOLDER,
        "index": INDEX,
        "listed": listed,
        "tasks": tasks,
    }
    facts |= {"slots": slots, "each": per_node or 1, "names": " ".join(names)}
    facts["hosts"] = " ".join(f"{name} {slots // nodes}" for name in names)
    kinds = yaml.safe_load((PARTS / "variables.yaml").read_text())
    found = {
        "SBX_NODES": str(nodes),
        "SBX_GPUS": str(sizes.gpus),
        "SBX_NODELIST": listed,
        "SBX_SLOTS": str(slots),
    }
    for condition, values in kinds[sizes.kind].items():
        if condition == "always" or facts[condition.removeprefix("if ")]:
            found |= {name: value.format(**facts) for name, value in values.items()}
    return found


def node_file(sizes: Sizes) -> str:
    """Return the file of nodes: PBS and LSF write a line for each rank or slot that is requested."""
    each = (
        (sizes.per_node or (sizes.tasks and sizes.tasks // sizes.nodes) or 1) if sizes.kind != "cobalt" else 1
    )
    return "".join(f"{name}\n" * each for name in node_names(sizes))


def run_script(text: str, sizes: Sizes, more: Mapping[str, str] = MappingProxyType({})) -> Ran:
    """Run a script, again with what the shell missed until that is all there; ``more``: other variables."""
    reader = read_script(text).reader
    at_home = (
        sizes.kind in ("pbs", "sge")
        and (reader is not None and reader.starts_at_home)
        and not re.search(r"^#(\$ +-cwd|PBS +-[dw] )", text, re.M)
    )
    flags = re.match(r"#!\s*\S+(?:\s+(-\w+))?", text)
    given: dict[str, Any] = {
        "python": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
        "python prefix": sys.base_prefix,
        "env": {**variables(sizes), **more},
        "cwd": "/home/user" if at_home else FOLDER,
        "script": f"{FOLDER}/job.script",
        "flags": [f"-{kept}"] if flags and flags[1] and (kept := re.sub("[^eux]", "", flags[1])) else [],
        "files": {f"{FOLDER}/job.script": text, "/var/nodes": node_file(sizes)},
        "folders": [FOLDER],
        "missing": [],
        "sourced": [],
        "unset": {},
        "limit": LIMIT_S,
        "drop": os.geteuid() == 0,
    }
    saved = KEPT[0] / f"{digest(given)}.json" if KEPT else None
    if saved and saved.exists():
        return msgspec.json.decode(saved.read_bytes(), type=Ran)
    for _ in range(ROUNDS):
        result = in_sandbox(given)
        if not add_missing(given, result):
            break
    launches = msgspec.convert(
        [one for one in result["records"] if one["kind"] == "program"], tuple[Launch, ...]
    )
    ran = Ran(launches, result["files"], result["code"], result["stderr"], given["unset"])
    if saved:
        saved.write_bytes(msgspec.json.encode(ran))
    return ran


def digest(given: dict[str, Any]) -> str:
    """Return a name for what a script does, with these stubs."""
    parts = b"".join(path.read_bytes() for path in sorted(PARTS.iterdir()) if path.is_file())
    rounds = inspect.getsource(add_missing).encode()
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode() + parts + rounds).hexdigest()


def in_sandbox(given: dict[str, Any]) -> dict[str, Any]:
    """Run the sandbox once."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "root")
        root.mkdir()
        spec = Path(scratch, "spec.json")
        spec.write_text(json.dumps(given | {"root": str(root)}))
        alone = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL"]
        alone += [] if given["drop"] else ["--user", "--map-root-user"]
        command = [*alone, sys.executable, "-IS", str(PARTS / "sandbox.py"), str(spec)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S * 3, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise RuntimeError(f"the sandbox did not start: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def add_missing(given: dict[str, Any], result: dict[str, Any]) -> bool:
    """Add what the shell missed; tell whether there was something new."""
    folders = {
        int(line): folder
        for line, _, folder in (one.partition("\t") for one in result["trace"].splitlines())
        if line.isdigit()
    }
    before = {name: len(given[name]) for name in ("folders", "missing", "sourced", "unset")}
    for name in re.findall(r": line \d+: (\w+): unbound variable$", result["stderr"], re.M):
        given["unset"][name] = given["env"][name] = f"/home/user/{name.lower()}"
    absent = r"exec: ([\w.+-]+): (?:cannot execute: )?(?:not found|No such file)"
    absent += r"|: (?:failed to run command )?\u2018([\w.+-]+)\u2019: No such file"
    for names in re.findall(absent, result["stderr"]):
        if (path := f"/usr/local/bin/{''.join(names)}") not in given["missing"]:
            given["missing"].append(path)
    pattern = r"^\S+: (?:line )?(\d+): (cd: |pushd: |source: |\.: )?([^:\n]+): "
    pattern += r"(?:No such file or directory|file not found)$"
    for line, command, path in re.findall(pattern, result["stderr"], re.M):
        whole = os.path.normpath(os.path.join(folders.get(int(line), FOLDER), path))
        name = re.escape(os.path.basename(path))
        source = (
            re.search(rf"(^|[;&|\s])(source|\.)\s+(\S*{name}|\S*\$)", script_line(given, int(line)))
            is not None
        )
        key = (
            "folders"
            if command.startswith(("cd", "pushd"))
            else "sourced"
            if command or source
            else "missing"
        )
        if (
            key == "missing"
            and os.path.dirname(path) not in ("", ".")
            and (above := os.path.dirname(whole)) not in given["folders"]
        ):
            key, whole = "folders", above  # of a file that the shell writes
        if whole not in given[key] and not whole.startswith(("/proc", "/dev", "/sbx", "/usr/lib")):
            given[key].append(whole)
    return any(len(given[name]) > count for name, count in before.items())


def script_line(given: dict[str, Any], line: int) -> str:
    """Return a line of the script."""
    lines = given["files"][given["script"]].split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


class Named:
    """Where port names a line, a word or a variable."""

    def __init__(self, text: str, ported: Ported) -> None:
        self.lines = text.split("\n")
        self.tasks = [task for task in ported.to_do if not task.startswith(("account:", "time:"))]
        report = ported.report
        self.reasons = {one.line: one.why for one in report.left_out}
        self.changes = {one.line: one.why for one in report.changed}
        self.places = {one.line: one.to.split("; ") for one in report.changed}

    def holding(self, *texts: str) -> set[int]:
        """Return the lines of the script that hold one of these texts."""
        texts = tuple(text for text in texts if text)
        return {number for number, line in enumerate(self.lines, 1) if any(text in line for text in texts)}

    def of_launch(self, line: int | None) -> set[int]:
        """Return the lines of a command: a shell counts its first or its last one."""
        if not line or line > len(self.lines):
            return set()
        first = last = line
        while first > 1 and self.lines[first - 2].rstrip().endswith("\\"):
            first -= 1
        while last < len(self.lines) and self.lines[last - 1].rstrip().endswith("\\"):
            last += 1
        return {*range(first, last + 1)}

    def tasks_at(self, lines: Iterable[int], kinds: str = "") -> bool:
        """Tell whether something to do speaks of one of these lines; ``kinds``: how it begins."""
        wanted = {*lines}
        return any(wanted & lines_in(task) for task in self.tasks if re.match(kinds, task))

    def tasks_with(self, *words: str) -> bool:
        """Tell whether something to do has one of these words."""
        patterns = [rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words if word]
        return any(re.search(pattern, task) for pattern in patterns for task in self.tasks)

    def reported(self, lines: Iterable[int], *words: str) -> bool:
        """Tell whether one of the lines is left out, or changed with one of the words in the reason."""
        wanted = {*lines}
        if wanted & self.reasons.keys():
            return True
        return any(word and word in self.changes.get(line, "") for line in wanted for word in words)


def lines_in(task: str) -> set[int]:
    """Return the lines of the old script that something to do speaks of."""
    found = set[int]()
    for group in re.findall(r"\blines? ([\d, -]+)(?! of the new)", task):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", group):
            found |= {*range(int(first), min(int(last or first), int(first) + 2000) + 1)}
    return found


def compare(text: str, old: Ran, new: Ran, ported: Ported) -> Iterator[Difference]:
    """Yield the points in which the programs of the new script do not get what those of the old one got."""
    named = Named(text, ported)
    pairs, missing, more = paired(old.launches, new.launches)
    for one in missing:
        yield missing_launch(one, named)
    for one in more:
        holes = re.findall(r"FILL_IN_\w+", " ".join(one.argv))
        places = named.holding(os.path.basename(one.argv[0]).partition(JOB)[0])
        by: By = "to do" if named.tasks_with(*holes) or named.tasks_at(places, ".*writes a file") else ""
        yield Difference(f"more: {' '.join(one.argv)[:200]}", by)
    for one, other in pairs:
        yield from launch_differences(one, other, old, new, named)


def paired(
    old: Sequence[Launch], new: Sequence[Launch]
) -> tuple[list[tuple[Launch, Launch]], list[Launch], list[Launch]]:
    """Return which launch of the old script is which of the new one, in order, and what is left of both."""
    pairs, left, more, at = list[tuple[Launch, Launch]](), [*old], list[Launch](), 0
    for one in new:
        scores = [
            (closeness(other.words, one.words) + 0.05 * (one.ranks == other.ranks), -place)
            for place, other in enumerate(left)
            if place >= at
        ]
        best = max(scores, default=(0.0, 0))
        if best[0] < 0.3:
            more.append(one)
            continue
        at = -best[1]
        pairs.append((left.pop(at), one))
    if not pairs and len(left) == len(more) == 1:
        return [(left[0], more[0])], [], []
    return pairs, left, more


def closeness(old: Sequence[str], new: Sequence[str]) -> float:
    """Return how much two lists of words have in common, the program foremost."""
    program = [Path(words[0]).name for words in (old, new)]
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() + (
        0.2 if program[0] == program[1] else 0
    )


def missing_launch(one: Launch, named: Named) -> Difference:
    """Return the difference of a launch that the new script has not."""
    lines = named.of_launch(one.line)
    script = [word for word in one.argv if re.search(r"[./]\w", word)][:1]
    lines |= named.holding(*script) if not lines else set()
    reported = named.reported(lines) or any(
        re.search(r"=\"?(\$\(|`)", named.lines[line - 1]) for line in lines & named.changes.keys()
    )
    by: By = "to do" if named.tasks_at(lines) else "report" if reported else ""
    return Difference(f"line {one.line}: not started: {' '.join(one.argv)[:200]}", by)


def launch_differences(one: Launch, other: Launch, old: Ran, new: Ran, named: Named) -> Iterator[Difference]:
    """Yield the differences of a launch."""
    lines = named.of_launch(one.line)
    yield from word_differences(one, other, lines, named)
    yield from variable_differences(one, other, named)
    if one.ranks is not None and one.ranks != other.ranks:
        said = named.tasks_at(lines, "ranks|nodes|command") or any(
            re.match("ranks|nodes|GPUs", task) for task in named.tasks
        )
        said = said or any("holds options of" in task for task in named.tasks)
        said = said or "FILL_IN_PROGRAM" in other.argv
        yield Difference(f"{one.ranks} ranks, not {other.ranks}", "to do" if said else "")
    if os.path.normpath(one.cwd) != os.path.normpath(other.cwd):
        moves = {
            number
            for number, line in enumerate(named.lines, 1)
            if re.search(r"\b(cd|pushd)\b|chdir|wdir|workdir|-D |--pwd", line)
        }
        by: By = (
            "to do"
            if named.tasks_at(moves) or named.tasks_with("folder", one.cwd, "--pwd")
            else "report"
            if named.reported(moves)
            else ""
        )
        yield Difference(f"folder {one.cwd}, not {other.cwd}", by)
    if one.image and one.image != other.image:
        said = any(task.startswith("container") for task in named.tasks) or named.tasks_at(lines)
        yield Difference(
            f"image {one.image}, not {other.image}",
            "to do" if said else "report" if named.reported(lines, one.image) else "",
        )
    if one.stdin.strip() and one.stdin != other.stdin:
        said = named.tasks_at(lines, ".*(stdin|reads|text)") or any("stdin" in task for task in named.tasks)
        yield Difference(f"stdin {one.stdin[:60]!r}, not {other.stdin[:60]!r}", "to do" if said else "")
    yield from file_differences(old.output_of(one) - new.output_of(other), lines, named)


def file_differences(files: set[str], lines: set[int], named: Named) -> Iterator[Difference]:
    """Yield the files that have a program's output in the old script alone, and are no logs by name."""
    for file in sorted(files):
        name = os.path.basename(file)
        if re.search(r"log|out|err|std|(?<![a-z])[eo]\d", name.lower()):
            continue
        said = named.tasks_with(name) or named.tasks_at(lines, ".*(output|prints)")
        said = said or named.tasks_at(named.holding(name) - lines, "command|output|line")
        yield Difference(
            f"output in {file}", "to do" if said else "report" if named.reported(lines, name) else ""
        )


KINDS = "command|env|line|array|nodes|ranks|folder"
"""How something to do begins that may be about a word of the program."""
OF_ALL_WORDS = (
    r".*(arguments of the script|cannot be read|known at run time|several programs|in a condition or a loop"
    r"|reads what another|reads an index|not a program|does not read|by the run|computes)"
)
"""Something to do that is about all words of a launch, if it names its line."""


def word_differences(one: Launch, other: Launch, lines: set[int], named: Named) -> Iterator[Difference]:
    """Yield the arguments that differ."""
    before, after = one.words, other.words
    by_mpi = any(each.get("name") == "mpiexec" for each in one.chain)
    if by_mpi and f"./{before[0]}" == after[0]:  # mpiexec looks in the folder, too
        before = (after[0], *before[1:])
    for _, first, last, begin, end in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        there, here = before[first:last], after[begin:end]
        pairs = [*zip(there, here, strict=False)]
        if len(there) == len(here) and all(one in (other, f"/usr/bin/{other}") for one, other in pairs):
            continue  # which and command -v print the path
        options = [before[first - 1]] if first and before[first - 1].startswith("-") else []
        words = [word for each in (*there, *here, *options) for word in (each, *re.split(r"[=,:\s]", each))]
        words += [os.path.basename(word) for word in there if "/" in word]
        words = [word for word in words if len(word) > 1 or word.isdigit()]
        values = [word for word in words if len(word) > 2]
        places = named.holding(*values) if values else set()
        names = {
            name for line in places for name in re.findall(r"\b([A-Za-z_]\w*)\+?=", named.lines[line - 1])
        }
        holes = [
            hole
            for task in named.tasks
            for hole in re.findall(r"FILL_IN_\w+", task)
            if hole in " ".join(here)
        ]
        said = bool(holes) or named.tasks_with(*words, *names) or named.tasks_at(places - lines, KINDS)
        said = said or named.tasks_at(lines, OF_ALL_WORDS)
        unread = any("image is known at run time only" in task for task in named.tasks)
        said = said or (one.image in words and unread)
        what = f"{' '.join(there)!r}, not {' '.join(here)!r}"
        yield Difference(
            what[:300], "to do" if said else "report" if named.reported(lines | places, *values) else ""
        )


def variable_differences(one: Launch, other: Launch, named: Named) -> Iterator[Difference]:
    """Yield the variables that the old script sets for the program and the new one does not set so."""
    for name, value in one.env.items():
        places = {
            number
            for number, line in enumerate(named.lines, 1)
            if re.search(rf"(?<![\w$]){name}\s*\+?[= ]", line)
        }
        code = {number for number in places if not named.lines[number - 1].lstrip().startswith("#")}
        if not code or other.env.get(name) == value or is_of_rank(name):
            continue
        if value in (INITIAL.get(name), f"/usr/bin/{other.env.get(name)}"):  # the program of its name
            continue
        alone = code - named.of_launch(one.line)
        said = named.tasks_with(name) or named.tasks_at(code, ".*a variable of the network")
        said = said or named.tasks_at(alone, "env|line|command|secret|array|software|environment")
        by: By = "to do" if said else ""
        changed = alone & named.changes.keys()
        instead = (text for line in code for text in named.places.get(line, ()))
        replaced = any(name in text for text in instead if not text.startswith(("command: ", "env")))
        by = by or ("report" if changed or replaced or named.reported(code, name) else "")
        yield Difference(f"{name}={value[:80]!r}, not {other.env.get(name, '')[:80]!r}", by)


INITIAL = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/user", "USER": "user", "TMPDIR": "/tmp"}


def is_of_rank(name: str) -> bool:
    """Tell whether launchers set a variable for each rank, or a scheduler for the job."""
    return (
        re.fullmatch(
            r"(LOCAL_|GROUP_)?RANK|(LOCAL_)?WORLD_SIZE|(SLURM|PBS|OMPI|PMIX?|PALS|ALPS|JSM|FLUX|MV2)_\w+",
            name,
        )
        is not None
    )


class Judged(NamedTuple):
    """The verdict on a port."""

    verdict: Verdict
    why: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def old_run(text: str, site: str) -> Ran:
    """Run an old script once for all targets."""
    profiles, _ = load_all()
    return run_script(text, sizes_of(text, profiles[site] if site else None))


def judge(text: str, site: str, target: SiteProfile) -> Judged:
    """Return the verdict on the port of a script from a site (empty: not known) to a target."""
    profiles, _ = load_all()
    try:
        ported, script = rendered_port(port_script(text, profiles[site] if site else None, target), target)
    except HpclaunchError as error:
        return Judged("not run", (f"refused: {error.message}",))
    old = old_run(text, site)
    if not old.launches:
        said = old.stderr.strip().split("\n")[-1][:200]
        return Judged("not run", (f"the old script starts nothing here (exit {old.code}): {said}",))
    new = run_script(script, sizes_of(script, target), old.unset)
    if not new.launches and "--dry-run --save DIR" in new.stderr:
        return Judged("not run", ("the new script needs the files of its job",))
    if not new.launches:
        said = new.stderr.strip().split("\n")[-1][:200]
        named = Named(text, ported).tasks_with(
            *re.findall(r"\$\{?(\w+)|(?<=: )\w+(?=: )", said), *re.findall(r"FILL_IN_\w+", said)
        )
        why = f"the new script starts nothing (exit {new.code}): {said}"
        return Judged("named", (f"to do: {why}",)) if named else Judged("silent", (why,))
    found = [*compare(text, old, new, ported)]
    shown = tuple(f"{one.by or 'SILENT'}: {one.what}" for one in found)
    ways = {one.by for one in found}
    verdict: Verdict = (
        "silent" if "" in ways else "reported" if "report" in ways else "named" if ways else "equal"
    )
    return Judged(verdict, (*shown, *(f"(to do) {task}" for task in ported.to_do)))


def main() -> None:
    """Print the verdicts by set and target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", help="print all about this script")
    parser.add_argument("--to", help="only this target")
    parser.add_argument("--set", dest="only", help="only this set")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder in which what scripts did is kept, and found again")
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(exist_ok=True)
        KEPT.append(asked.keep)
    profiles, _ = load_all()
    facts = {one.name: one for one in read_facts()}
    work = list[tuple[str, str, str, str, str]]()
    for path in sorted(asked.folder.iterdir()):
        fact = facts.get(path.name.removesuffix(".sh"))
        group: str = (fact.group or "first") if fact else "others"
        if (
            not path.is_file()
            or asked.only not in (None, group)
            or asked.show not in (None, path.name.removesuffix(".sh"))
        ):
            continue
        text = path.read_text(errors="replace").replace("\r\n", "\n")
        text += "\n" * text.endswith("\\")  # which bash takes for an empty word at the end of a file
        try:
            site = (fact.source if fact else "") or site_of(read_script(text), profiles) or ""
        except HpclaunchError:
            continue
        work += [(group, path.name, text, site, target) for target in TARGETS if asked.to in (None, target)]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    with ThreadPoolExecutor(asked.jobs) as pool:
        found = pool.map(lambda each: judge(each[2], each[3], profiles[each[4]]), work)
        for (group, name, _, _, target), (verdict, why) in zip(work, found, strict=True):
            counts[group, target][verdict] += 1
            if asked.show or verdict in ("silent", "not run"):
                shown = (
                    why
                    if asked.show
                    else [
                        each
                        for each in why
                        if each.startswith("SILENT") or verdict == "not run" or "starts nothing" in each
                    ]
                )
                print(name, target, verdict, *shown, sep="\n  ", flush=True)
    kinds = ("equal", "named", "reported", "silent", "not run")
    rows: list[tuple[str, ...]] = [("set", "target", "scripts", *kinds)]
    everything = sum(counts.values(), Counter())
    for (shown_group, target), each in [*sorted(counts.items()), (("all", ""), everything)]:
        rows.append((shown_group, target, str(each.total()), *(str(each[kind]) for kind in kinds)))
    print(text_table(rows))


if __name__ == "__main__":
    main()
