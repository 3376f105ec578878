"""What people type from other tools: one table for the refusals and for docs/reference/options.md."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.plan.foreign_options import NOTIONS, TOOLS, explain
from hpclaunch.scheduler.directive_reader import Subject
from tests.in_one_test import in_one_test

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
COLUMNS = {
    "slurm": "Slurm (sbatch)",
    "pbs": "PBS (qsub)",
    "flux": "Flux (flux batch)",
    "lsf": "LSF (bsub)",
    "torchrun": "torchrun",
}

SAID = [
    ("slurm", "--gpus 4", "--tasks 4 --gpus-per-task 1"),
    ("slurm", "-G4", "--tasks 4 --gpus-per-task 1"),
    ("slurm", "--gpus-per-node=2", "--tasks-per-node 2 --gpus-per-task 1"),
    ("slurm", "--gres gpu:2", "--tasks-per-node 2 --gpus-per-task 1"),
    ("slurm", "--gres=gpu:a100:4,nvme:1", "--tasks-per-node 4 --gpus-per-task 1"),
    ("slurm", "--gres nvme:1", "--directive '--gres nvme:1'"),
    ("slurm", "--constraint=gpu", "--directive --constraint=gpu"),
    ("slurm", "--reservation=R", "--directive --reservation=R"),
    ("pbs", "--reservation=R1", "--queue R1: a reservation of PBS is a queue"),
    ("slurm", "--nodelist=n1", "--directive --nodelist=n1"),
    ("slurm", "-x n1", "--exclude n1"),
    ("lsf", "-x", "--exclusive"),
    ("slurm", "--dependency=afterok:1:2", "--after 1,2"),
    ("slurm", "-d afterany:7", "--after 7 --after-any"),
    ("pbs", "-W depend=afterany:7.server", "--after 7.server --after-any"),
    ("pbs", "-W block=true", "--wait"),
    ("lsf", "-w done(3)", "--after 3"),
    ("lsf", "-W 1:30", "--time 01:30:00"),
    ("slurm", "-b 2026-12-01T08:00:00", "--begin 2026-12-01T08:00"),
    ("slurm", "-b now+1hour", "--directive '-b now+1hour'"),
    ("slurm", "--output x", "hpclaunch logs ID"),
    ("pbs", "-o x", "hpclaunch logs ID"),
    ("slurm", "--mail-type=END", "--directive --mail-type=END"),
    ("pbs", "--mail-type=END,FAIL", "--directive '-m ea'"),
    ("pbs", "--mail-user=me@x.org", "--directive '-M me@x.org'"),
    ("slurm", "-m abe", "leave it out: the binding is computed"),
    ("flux", "--mail-type=END", "flux batch has no such option"),
    ("flux", "--constraint=x", "flux batch has --requires for it"),
    ("slurm", "--mem-per-cpu=4G", "--mem AMOUNT"),
    ("pbs", "-l select=2:ncpus=8:mpiprocs=4:ngpus=4", "--nodes 2 --tasks-per-node 4"),
    ("pbs", "-l walltime=3600", "--time 01:00:00"),
    ("pbs", "-lwalltime=0:10:00", "--time 00:10:00"),
    ("pbs", "-l filesystems=home", "--directive '-l filesystems=home'"),
    ("pbs", "-q debug", "--queue debug"),
    ("slurm", "-q debug", "--queue debug if the site's profile lists that QOS"),
    ("lsf", "-J train[1-3]", "--name train --array 1-3"),
    ("lsf", "-nnodes 2", "--nodes 2"),
    ("lsf", "-R span[ptile=4]", "--tasks-per-node 4"),
    ("slurm", "--export=ALL,A=b,C=d", "--env A=b --env C=d"),
    ("slurm", "--chdir=/x", "the job runs where it is submitted"),
    ("slurm", "--licenses=a:1", "--directive --licenses=a:1"),
    (None, "--nproc_per_node=8", "--tasks-per-node 8"),
    (None, "--nproc-per-node gpu", "--tasks-per-node N"),
    (None, "--nnodes 2", "--nodes 2"),
    (None, "--rdzv_backend=c10d", "leave it out: the script sets MASTER_ADDR"),
    ("slurm", "--ntasks-per-gpu=1", "GPUs are counted by ranks"),
]


@in_one_test("kind, typed, words", SAID)
def test_the_exact_words_are_said(kind: str | None, typed: str, words: str) -> None:
    (said,) = explain(typed.split(), kind)
    assert words in said


def test_without_a_site_each_tool_that_means_something_else_is_named() -> None:
    assert explain(["-q", "debug"], None) == (
        "-q of sbatch: --queue debug if the site's profile lists that QOS (hpclaunch sites show NAME), else"
        " --directive '-q debug'",
        "-q of qsub: --queue debug",
    )
    assert explain(["--ntasks", "4"], None) == ("--ntasks of sbatch: --tasks 4",)


@in_one_test("typed", ["--epochs", "--lr=0.1", "--batch-size", "-Y"])
def test_an_option_that_no_tool_has_is_not_explained(typed: str) -> None:
    assert explain([typed], "slurm") == ()


def test_every_notion_is_answered_and_each_answer_belongs_to_a_notion() -> None:
    assert set(NOTIONS) == set(get_args(Subject))


def test_what_is_advised_exists() -> None:
    from hpclaunch.cli.submit import command

    names = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for notion in NOTIONS.values():
        advised = (word.strip(",;:.()") for word in f"{notion.ours} {notion.say}".split())
        assert {word for word in advised if word.startswith("--") and len(word) > 2} <= names, notion


@in_one_test("kind, typed", [(kind, typed) for kind, typed, words in SAID if words.startswith("--directive")])
def test_an_advised_directive_is_taken(kind: str, typed: str) -> None:
    import shlex

    from hpclaunch.plan.request_rules import check_directives
    from hpclaunch.scheduler.registry import get_scheduler

    (said,) = explain(typed.split(), kind)
    words = shlex.split(said.partition(": ")[2])
    check_directives(get_scheduler(kind), [words[words.index("--directive") + 1]])


@given(
    st.lists(st.text(st.sampled_from("-=lNqGWJRw[]:,gpumes1 \u00e9'"), max_size=12), min_size=1, max_size=2),
    st.sampled_from([None, "slurm", "pbs", "lsf", "flux", "sge", "cobalt", "local"]),
)
def test_any_words_are_read(words: list[str], kind: str | None) -> None:
    for said in explain([f"-{words[0]}", *words[1:]], kind):
        assert " of " in said
        assert not said.endswith(": ")


def options_of(kind: str, subject: Subject) -> str:
    """The options of a tool about a notion, each with its letter."""
    tool = next(tool for tool in TOOLS if tool.kind == kind)
    letters: dict[str, str] = {}
    for letter in string.ascii_letters if kind in ("slurm", "flux", "torchrun") else "":
        option = next(iter(tool.read([f"-{letter}", "1"])))
        if option.known:
            letters[option.name] = f" `-{letter}`"
    names = [name for name, about in tool.options.items() if about == subject]
    return ", ".join(f"`{tool.shown(name)}`{letters.get(name, '')}" for name in names)


def table() -> str:
    """The reference page's table."""
    head = ("meaning", "hpclaunch", *COLUMNS.values())
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for subject, notion in NOTIONS.items():
        ours = ", ".join(f"`{name}`" for name in notion.ours.split())
        ours = ours or {True: "not needed"}.get("leave it out" in notion.say, "`--directive`")
        if notion.say.startswith("-- "):
            ours = f"`{notion.say.partition(' {')[0]}`"
        cells = [options_of(kind, subject) for kind in COLUMNS]
        lines.append(f"| {' | '.join((notion.meaning, ours, *cells))} |".replace("|  |", "| |"))
    return "\n".join(lines).replace("|  |", "| |") + "\n"


def test_the_reference_page_is_fresh() -> None:
    """HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes its table from the table of the notions."""
    page = PAGE.read_text()
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        PAGE.write_text(page[: page.find("| meaning |")].rstrip() + "\n\n" + table())
    assert PAGE.read_text().endswith("\n\n" + table())
