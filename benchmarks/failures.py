"""How often the right rank, cause and remedy of a failed job are named: ``benchmarks/failures.py``.

The cases are those of tests/data/failures, each written as the folder of a job and read as ``status`` does.
``open`` is the half with which the rules were made, ``kept`` the half that was kept apart, ``kept/fourth``,
``kept/fifth`` to ``kept/tenth`` what later authors added, not counted in
``kept``. With ``--wrong`` each case that is not right is shown. Of healthy logs it is not said whether their
job had failed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from hpclaunch.failures.failed_ranks import ranks_named
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.failure_causes import failure_of
from hpclaunch.job.log_extract import read_failures
from hpclaunch.job.record import Failure, JobRecord
from hpclaunch.job.store import Store
from tests.testbed.kit import new_record

CASES = Path(__file__).parents[1] / "tests" / "data" / "failures"
LATER_AUTHORS = ("fourth-", "fifth-", "sixth-", "seventh-", "eighth-", "ninth-", "tenth-")
"""How the names of those cases in ``kept`` begin that have a column of their own."""


class Case(NamedTuple):
    """One log with what truly happened, and what was found."""

    name: str
    truth: dict[str, Any]
    found: Failure

    @property
    def healthy(self) -> bool:
        return bool(self.truth["kind"] == "healthy")

    @property
    def cause(self) -> str | None:
        return self.found.cause

    @property
    def right_rank(self) -> bool:
        """Whether the right rank is named; of several at fault some, or as candidates all of them alone."""
        wanted, named = set(self.truth["expect"]["rank"]), ranks_named(self.found.rank)
        if not wanted or (len(wanted) > 1 and ranks_named(self.found.candidates) == wanted):
            return True
        return bool(named) and named <= wanted

    @property
    def rank_untold(self) -> bool:
        """Whether no rank can be told from the log: nobody can see which one it was, or all failed alike."""
        return not self.healthy and not self.truth["expect"]["rank"] and self.truth["ranks"] > 1

    @property
    def right_cause(self) -> bool:
        expect = self.truth["expect"]
        return self.cause in (expect["cause"], *expect["also"])

    @property
    def wrong_remedy(self) -> bool:
        """Whether a remedy is given, and it is that of another cause."""
        return bool(self.found.remedy) and not self.right_cause

    @property
    def shown(self) -> bool:
        """Whether the line that tells it is shown, or its words after the label of its rank."""
        line = self.truth["expect"].get("line")
        texts = (self.truth["log"], *(self.truth.get("stderr") or {}).values())
        whole = [each for text in texts for each in text.splitlines() if line and line.strip() in each]
        return not line or any(
            line.strip() in each or any(each in other for other in (line, *whole))
            for each in self.found.lines
        )

    @property
    def right_place(self) -> bool:
        """Whether the file and line of the program are named, where the log has them."""
        where = self.truth["expect"].get("where")
        return not where or (self.found.where or "").endswith(str(where).rpartition("/")[2])


def cases(half: str) -> list[Case]:
    """Read the cases of one half, each as the folder of a job."""
    truths = {path.stem: yaml.safe_load(path.read_text()) for path in _files(half)}
    with tempfile.TemporaryDirectory() as made:
        for name, truth in truths.items():
            folder = Path(made, name)
            folder.mkdir()
            (folder / "out.log").write_text(truth["log"])
            for rank, words in (truth.get("stderr") or {}).items():
                (folder / "stderr").mkdir(exist_ok=True)
                (folder / "stderr" / str(rank)).write_text(words)
        logs = read_failures(LocalHost(), [str(Path(made, name)) for name in truths])
        record = new_record(Store(Path(made)), "local", Path(made))
        found = {
            name: failure_of(_ended(record, truth), logs[str(Path(made, name))])
            for name, truth in truths.items()
        }
    return [Case(name, truth, found[name]) for name, truth in truths.items()]


def _files(half: str) -> list[Path]:
    """The files of a half, or with ``HALF/AUTHOR`` those of one later author."""
    folder, _, author = half.partition("/")
    found = sorted((CASES / folder).glob(f"{author}*.yaml"))
    return [path for path in found if author or folder == "open" or not path.name.startswith(LATER_AUTHORS)]


def _ended(record: JobRecord, truth: dict[str, Any]) -> JobRecord:
    """The record of a job as its scheduler reports it: it failed, or nothing is known.

    No case names its nodes: more than eight ranks are counted as a job of several.
    """
    ranks, code = truth["ranks"], 1 if truth["kind"] == "failure" else None
    return replace(record, tasks=ranks, nodes=1 + (ranks > 8), exit_code=code)


def share(part: int, whole: int) -> str:
    """``57 of 60 (95.0 %)``."""
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def table(found: list[Case]) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table of one half."""
    failures, healthy = [c for c in found if not c.healthy], [c for c in found if c.healthy]
    ranked = [c for c in failures if c.truth["expect"]["rank"]]
    placed = [c for c in failures if c.truth["expect"].get("where")]
    named = [c for c in failures if c.cause]
    yield "right rank", share(sum(c.right_rank for c in ranked), len(ranked))
    untold = [c for c in failures if c.rank_untold]
    yield (
        "named a rank where none can be known",
        share(sum(c.found.rank is not None for c in untold), len(untold)),
    )
    yield "right cause", share(sum(c.right_cause for c in failures), len(failures))
    yield "right cause, of those with one named", share(sum(c.right_cause for c in named), len(named))
    yield "wrong remedy", share(sum(c.wrong_remedy for c in failures), len(failures))
    yield "the line that tells it is shown", share(sum(c.shown for c in failures), len(failures))
    yield "file and line of the program", share(sum(c.right_place for c in placed), len(placed))
    yield "a cause named in a healthy log", share(sum(c.cause is not None for c in healthy), len(healthy))


def main() -> None:
    """Print the table of each half."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = ["open", "kept", *(f"kept/{author.rstrip('-')}" for author in LATER_AUTHORS)]
    parser.add_argument("halves", nargs="*", default=usual, metavar="HALF")
    parser.add_argument("--wrong", action="store_true", help="show each case that is not right")
    given = parser.parse_args()
    halves = {half: cases(half) for half in given.halves}
    print("|   | " + " | ".join(halves) + " |\n|---|" + "---|" * len(halves))
    rows = [list(table(found)) for found in halves.values()]
    for row in zip(*rows, strict=True):
        print(f"| {row[0][0]} | " + " | ".join(value for _, value in row) + " |")
    if given.wrong:
        for case in (case for found in halves.values() for case in found):
            _show(case)


def _show(case: Case) -> None:
    found = case.found
    if case.healthy:
        if case.cause:
            print(f"\n{case.name}: healthy, named {case.cause}: {found.lines}")
        return
    wrong = [
        name for name in ("right_rank", "right_cause", "shown", "right_place") if not getattr(case, name)
    ]
    if case.rank_untold and found.rank is not None:
        wrong.append("without a rank")
    if wrong:
        expect = case.truth["expect"]
        print(f"\n{case.name}: not {', '.join(wrong)}\n  facts   {case.truth['facts']}\n  expect  {expect}")
        print(f"  found   rank {found.rank}, {case.cause}, {found.where}\n          {found.lines}")


if __name__ == "__main__":
    main()
