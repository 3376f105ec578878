"""How ``hpclaunch port`` does on public batch scripts: right, incomplete and said, or wrong in silence.

    python benchmarks/port.py FOLDER [--show NAME] [--half HALF]
    python benchmarks/port.py --judged

A script that is not in FOLDER is left out, and the number of scripts in the table says so.

``benchmarks/data/port_scripts*.yaml`` (the plain one, unseen, drawn, fifth to twelfth) name public
scripts (repository, commit, path) and what must be true of a port of each. ``FOLDER`` holds them under
their names: ``git show COMMIT:PATH > FOLDER/NAME.sh``; they belong to others and are not part of the project.

Every script is ported to each target. A port is

- right, where ranks, GPUs and the program's words are those of the script, nothing stays that belongs to the
  other machine, and the new script renders;
- incomplete, where one of these is not so, and the list of things to do names it, by its line or its words;
- wrong in silence, where it is not so and nothing is said.

A lot divides the first file: scripts whose SHA-256 modulo 5 is below 3 were open from the beginning; the
others were kept apart, and opened on 2026-11-25. The second file was written by somebody who had not read
port; half of its scripts, by lot, were opened after all had been judged once, the others, called unseen, on
2026-11-28, after they had been counted five times. The third file was written on 2026-11-28 by the author of
the rules that came after it; half of its scripts, by lot, were opened at once, the others, called drawn,
later that day. Somebody who had not read port wrote the fourth file, called fifth, and another judged it; it
was opened afterwards. The fifth file, called sixth, came about likewise, and was opened after that
count; the author of the rules has read all scripts up to there. The sixth file, called seventh, came about
likewise. So did the seventh file, called eighth (the scripts' SHA-256 are next to it): counted once, at
d20c9878, 6 of its 72 ports were right, 48 incomplete and 18 wrong in silence; read by hand, 16 were (11 of
those 18, and 5 in which the program saw nothing), and no person needs 47 of the 156 things to do on Polaris.
The eighth file, called ninth, came about likewise, in less time and of simpler scripts: counted once, at
6d5186af, 12 of its 72 ports were right, 57 incomplete and 3 wrong in silence (249's condition, which the
list of things to do names by its line); by hand, read on Polaris alone and counted for all three, 6 were:
256's a.out without a path, and 254's result.txt, which is the job's log here. So did the ninth file, called
tenth, 14 of its 24 not for Slurm: counted once, at a47be4b9, 3 of its 72 ports were right, 51 incomplete
and 18 wrong in silence; by hand 6 were: 271's PMI_RANK, which the program is given by its name, and 280's
Python in a folder of the script. The program's other 12 ask for the name of an image or of an index that
the port asks for or replaces, and for a folder of the log. port_run calls 21 equal, 33 listed, 9 reported,
3 silent (a job's number without its server), and 6 end before their launch.
The tenth file, called eleventh, is by somebody who had read port. Before anything was mended for its scripts,
at 873bcd8e, port_run called 17 of its 72 ports equal, 42 listed, 8 reported and 5 silent, and so they were,
read by hand: a batch's size by the nodes there, and threads by the slots of a node. No person needed 50 of
the 519 things to do.
The eleventh file, called twelfth, has 20 new scripts of 24 that somebody drew who had not read port. A judge
read the ports to lumi-g, polaris and isambard-ai by hand, at 71f1a87a: 31 of 60 are incomplete and say so, 10
are silent, and 19 more are silent about what shows itself at once or only costs cores. Rules were made from
11 scripts: of the 27 ports of the other nine 26 say all at c6db2700, and 1 is silent. All are open now.

``--judged`` prints how judges read the ports of 40 more scripts, the thirteenth and the fourteenth set, by
hand, as recorded in ``benchmarks/data/port_judged.tsv``: drawn by one who had not read port, expected
before any run, and read by others, at 700d9efc and c9dfb541 before rules were made from the half ``open``,
and at the commits after them with them. ``mild``: silent, but it shows itself at once, or costs cores or
idle GPUs that a dry run names. ``refused``: a script that only submits others. ``kept`` of the thirteenth
was opened after that.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import yaml

from hpclaunch.errors import HpclaunchError
from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_script import site_of
from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from hpclaunch.site.load_profile import load_all
from hpclaunch.site.schema import SiteProfile
from hpclaunch.text_table import text_table

FACTS = Path(__file__).parent / "data" / "port_scripts.yaml"
TARGETS = ("lumi-g", "polaris", "olivia")
Blind = Literal["fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"]
"""Files that are one half, each but the last by somebody who had not read port."""
Group = Literal["", "unseen", "drawn", Blind]
Half = Literal["open", "kept", "unseen, opened", "unseen", "drawn, opened", "drawn", Blind]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What must be true of a port of one script; the keys are explained in the file."""

    name: str
    repository: str
    commit: str
    path: str
    source: str = msgspec.field(name="from")
    line: int
    ranks: int | None
    gpus: int | None
    words: tuple[str, ...]
    gone: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    group: Group = ""

    @property
    def half(self) -> Half:
        """The half that the lot puts it into, or that of its file."""
        digest = hashlib.sha256(f"{self.repository}/{self.path}".encode()).hexdigest()
        if self.group == "unseen":
            return "unseen" if int(digest, 16) % 2 else "unseen, opened"
        if self.group == "drawn":
            return "drawn" if int(digest, 16) % 2 else "drawn, opened"
        if self.group == "":
            return "open" if int(digest, 16) % 5 < 3 else "kept"
        return self.group


class Difference(msgspec.Struct, frozen=True):
    """A point in which a port is not what the script says, and whether something to do names it."""

    what: str
    said: bool


def read_facts() -> tuple[Facts, ...]:
    """Return the facts about all scripts."""
    groups: tuple[Group, ...] = get_args(Group)
    files = {group: FACTS.with_name(f"port_scripts_{group}.yaml") if group else FACTS for group in groups}
    return tuple(
        msgspec.structs.replace(each, group=group)
        for group, file in files.items()
        for each in msgspec.convert(
            yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)), tuple[Facts, ...]
        )
    )


def differences(facts: Facts, text: str, ported: Ported, target: SiteProfile) -> Iterator[Difference]:
    """Yield the points in which a port is not what the facts say."""
    said = "\n".join(ported.to_do)
    at_line = _names_line(said, facts.line)
    yield from _sizes(facts, ported.settings, target, said)
    shown = " ".join((*shlex.split(" ".join(ported.settings["command"])), ported.settings["command"][-1]))
    for word in facts.words:
        if word not in shown:
            yield Difference(
                f"the command has no {word}", at_line or word in said or "FILL_IN_PROGRAM" in said
            )
    for word in facts.gone:
        if word in shown:
            yield Difference(f"the command has {word}", word in said)
    for named in facts.named:
        lines = (number for number, line in enumerate(text.split("\n"), 1) if named in line)
        known = named in said or any(_names_line(said, number) for number in lines)
        yield Difference(f"{named} is for the user to decide", known)
    for line in ported.to_do:
        if re.match(r"(env|container|GPUs|line \d+ of the new script)\b", line):
            yield Difference(line, said=True)


def _sizes(facts: Facts, settings: dict[str, Any], target: SiteProfile, said: str) -> Iterator[Difference]:
    gpus = len(target.node.gpus) if target.node else 0
    nodes, per_node = settings.get("nodes"), settings.get("tasks_per_node")
    named = re.search(r"^(nodes|GPUs|ranks)\b", said, re.MULTILINE) is not None
    ranks = (nodes or 1) * (per_node or gpus)  # without tasks_per_node hpclaunch starts one rank per GPU
    if facts.ranks is not None and ranks != facts.ranks:
        yield Difference(f"{nodes} x {per_node} ranks, not {facts.ranks}", named)
    if not facts.gpus or not nodes or not gpus:
        return
    each = settings.get("gpus_per_task")
    used = nodes * (per_node * each if per_node and each else min(gpus, per_node or gpus))
    if facts.ranks and facts.gpus >= facts.ranks and used != facts.gpus:
        yield Difference(f"{used} GPUs, not {facts.gpus}", named)
    if per_node and per_node > gpus and facts.ranks and facts.gpus >= facts.ranks:
        yield Difference(f"{per_node} ranks on the {gpus} GPUs of a node", named)


def _names_line(said: str, line: int) -> bool:
    """Tell whether a list of things to do speaks of a line of the script."""
    lists = re.findall(r"\blines? ([\d, -]+)(?! of the new)", said)
    ranges = [pair for one in lists for pair in re.findall(r"(\d+)(?:-(\d+))?", one)]
    return any(int(first) <= line <= int(last or first) for first, last in ranges)


def judge(
    facts: Facts, text: str, target: SiteProfile, profiles: dict[str, SiteProfile]
) -> tuple[str, list[str]]:
    """Return the verdict on the port of a script to a target, and why."""
    source = facts.source or site_of(read_script(text), profiles)
    try:
        ported, _ = rendered_port(port_script(text, profiles[source] if source else None, target), target)
    except HpclaunchError as error:
        return "refused", [error.message]
    found = list(differences(facts, text, ported, target))
    shown = [f"{'said' if one.said else 'SILENT'}: {one.what}" for one in found]
    verdict = "right" if not found else "incomplete" if all(one.said for one in found) else "wrong"
    return verdict, [*shown, *(f"to do: {line}" for line in ported.to_do), str(ported.settings)]


def print_judged() -> None:
    """Print the verdicts of the judges by set, half and commit."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    with FACTS.with_name("port_judged.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            key = row["set"], row["half"], row["commit"]
            counts[key].update({row["verdict"]: 1, "needless": int(row["needless"])})
    names = ("right", "said", "silent", "mild", "refused", "needless")
    rows = [(*key, *(str(found[name]) for name in names)) for key, found in counts.items()]
    print(text_table([("set", "half", "commit", *names), *rows]))


def main() -> None:
    """Print the verdicts by half and target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--judged", action="store_true", help="print the verdicts of judges on two sets")
    parser.add_argument("--show", help="print the reasons for this script")
    parser.add_argument("--half", choices=get_args(Half), help="only this half; prints what is wrong in it")
    asked = parser.parse_args()
    if asked.judged:
        print_judged()
        return
    if asked.folder is None:
        parser.error("name the folder of the scripts")
    profiles, _ = load_all()
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for facts in read_facts():
        if asked.half not in (None, facts.half) or asked.show not in (None, facts.name):
            continue
        if not (asked.folder / f"{facts.name}.sh").exists():
            continue
        text = (asked.folder / f"{facts.name}.sh").read_text(errors="surrogateescape")
        for target in TARGETS:
            verdict, why = judge(facts, text, profiles[target], profiles)
            counts[facts.half, target][verdict] += 1
            if asked.show:
                print(f"{target}: {verdict}", *why, sep="\n  ")
            elif asked.half and verdict in ("wrong", "refused"):
                print(
                    facts.name,
                    target,
                    verdict,
                    *(each for each in why if not each.startswith("said")),
                    sep="\n  ",
                )
    kinds = ("right", "incomplete", "wrong", "refused")
    names = (
        "half",
        "target",
        "scripts",
        "right",
        "right %",
        "incomplete, said",
        "wrong in silence",
        "refused",
    )
    rows = [names]
    for (half, target), found in sorted(counts.items(), reverse=True):
        right, said, wrong, refused = (str(found[kind]) for kind in kinds)
        share = f"{100 * found['right'] / found.total():.0f}"
        rows.append((half, target, str(found.total()), right, share, said, wrong, refused))
    print(text_table(rows))


if __name__ == "__main__":
    main()
