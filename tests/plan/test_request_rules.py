"""The site's rules: what fits, what is refused, and that a refusal names the rule and its source."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.plan import request_rules
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.site.schema import (
    Account,
    Binding,
    Queue,
    Route,
    Scheduler,
    SiteProfile,
    Source,
)
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here

PAGE = "https://docs.example.org/queues"
QUEUES = {
    "prod": Queue(max_nodes=100, max_walltime="2-00:00:00", min_nodes=2, source="queues"),
    "short": Queue(max_nodes=4, max_walltime="01:00:00", whole_node=False, source="queues"),
    "cpu": Queue(max_nodes=500, gpus=False),
    "scrap": Queue(max_nodes=500, preemptable=True),
    "big": Queue(max_nodes=500, by_request=True),
    "routed": Queue(
        max_nodes=500,
        routes=(
            Route(name="small", min_nodes=101, max_nodes=200, max_walltime="03:00:00"),
            Route(name="large", min_nodes=201, max_nodes=500, max_walltime="24:00:00"),
        ),
    ),
}


def profile(**changes: Any) -> SiteProfile:
    fields: dict[str, Any] = {
        "schema": 1,
        "name": "here",
        "description": "a test site",
        "scheduler": Scheduler(kind="slurm", launcher="srun"),
        "binding": Binding(cpu="mask_cpu", source="queues"),
        "queues": QUEUES,
        "account": Account(required=True, pattern=r"p\d+", example="p42", source="queues"),
        "sources": {"queues": Source(url=PAGE, checked=dt.date(2026, 11, 20))},
    }
    return SiteProfile(**{**fields, **changes})


@in_one_test(
    "nodes, walltime_s, name",
    [(2, 3600, "prod"), (1, 3600, "short"), (150, 3600, "routed"), (300, 80000, "routed")],
)
def test_the_first_queue_that_fits_is_taken(nodes: int, walltime_s: int, name: str) -> None:
    choice = request_rules.choose_queue(profile(), None, nodes, walltime_s)
    assert (choice.name, choice.problem) == (name, None)
    assert "first partition that fits" in choice.reason


@in_one_test("nodes, walltime_s", [(1, 7200), (501, 60), (150, 4 * 3600), (3, 200000)])
def test_where_none_fits_each_says_why(nodes: int, walltime_s: int) -> None:
    with pytest.raises(SiteRuleError) as error:
        request_rules.choose_queue(profile(), None, nodes, walltime_s)
    text = str(error.value)
    assert all(f"{name}: " in text for name in QUEUES)
    assert PAGE in text
    assert "2026-11-20" in text


@in_one_test(
    "name, nodes, walltime_s, why",
    [
        ("prod", 1, 60, "at least 2 needed"),
        ("prod", 101, 60, "at most 100 allowed"),
        ("short", 1, 3601, "at most 01:00:00 allowed"),
        ("cpu", 1, 60, "no GPUs"),
        ("routed", 150, 4 * 3600, "none of its execution queues"),
    ],
)
def test_a_named_queue_that_does_not_fit_is_refused(name: str, nodes: int, walltime_s: int, why: str) -> None:
    from hpclaunch.site.schema import Node, NumaDomain, SiteGpu

    node = Node(
        cpu_model="c", cores=2, numa=(NumaDomain(id=0, cores="0-1"),), memory_gib=1, gpus=(SiteGpu(numa=0),)
    )
    with pytest.raises(SiteRuleError, match=why):
        request_rules.choose_queue(profile(node=node), name, nodes, walltime_s)


@pytest.mark.parametrize("name", ["scrap", "big"])
def test_queues_only_when_named_are_taken_when_named(name: str) -> None:
    assert request_rules.choose_queue(profile(), name, 500, 60).name == name


def test_a_qos_is_taken_where_the_site_knows_nothing_else() -> None:
    debug = Queue(kind="qos", automatic=True, max_nodes=8)
    queues = {"part": Queue(automatic=False), "debug": debug, "premium": Queue(kind="qos")}
    choice = request_rules.choose_queue(profile(queues=queues), None, 8, 60)
    assert (choice.name, choice.reason) == ("debug", "the first qos that fits: up to 8 nodes, any time")
    with pytest.raises(SiteRuleError) as error:
        request_rules.choose_queue(profile(queues=queues), None, 9, 60)
    assert "part: only when named" in str(error.value)
    assert "premium: a QOS, so only when named" in str(error.value)


def test_an_unknown_queue_is_planned_and_would_be_refused() -> None:
    choice = request_rules.choose_queue(profile(), "prd", 500, 60)
    assert choice.name == "prd"
    assert choice.problem is not None
    assert "did you mean prod?" in choice.problem.message
    assert "part_of: here, queues: {prd: {}}" in str(choice.problem.hint)


def test_each_queue_of_a_list_must_take_the_job() -> None:
    choice = request_rules.choose_queue(profile(), "prod,scrap", 5, 60)
    assert (choice.name, choice.queue, choice.problem) == ("prod,scrap", QUEUES["prod"], None)
    assert "--partition prd" in str(request_rules.choose_queue(profile(), "prod,prd", 5, 60).problem)
    with pytest.raises(SiteRuleError, match="short of here does not take"):
        request_rules.choose_queue(profile(), "prod,short", 5, 60)


def test_accounts() -> None:
    request_rules.check_account(profile(), "p1")
    request_rules.check_account(profile(account=Account()), None)
    with pytest.raises(SiteRuleError, match="requires a project account") as error:
        request_rules.check_account(profile(), None)
    assert PAGE in str(error.value)
    assert "p42" in str(error.value)
    with pytest.raises(SiteRuleError, match="is not an account of here"):
        request_rules.check_account(profile(), "q1")


@in_one_test(
    "text",
    [
        "--nodes=4",
        "-N 4",
        "-N4",
        "--ntasks 4",
        "-t 10",
        "--cpus-per-task=3",
        "--gres=gpu:4",
        "-p dev",
        "-A p1",
        "--output=x",
        "--job-name=x",
        "--mem=5G",
        "--tim=5",
        "--job-nam=z",
        "--wait",
        "-Ht 5",
        "--mail-type=END --time=5",
        "-e err.log",
    ],
)
def test_directives_that_contradict_the_plan_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="would contradict"):
        request_rules.check_directives(SLURM, [text])


@in_one_test(
    "text",
    [
        "-W umask=22,depend=afterok:1",
        "-W block=true",
        "-j oe -A x",
        "-l select=4",
        "-lselect=4",
        "-l place=pack,walltime=1:00",
        "-A x",
        "-N x",
        "-q y",
    ],
)
def test_pbs_directives_that_contradict_the_plan_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="would contradict"):
        request_rules.check_directives(PBS, [text])


@in_one_test(
    "text", ["--mail-type=END", "--nodelist=n1", "--nice", "--constraint=a&b", "-x n3", "--wait-all-nodes=1"]
)
def test_other_directives_pass(text: str) -> None:
    request_rules.check_directives(SLURM, [text])


@in_one_test("text", ["", "  ", "--a\n--b", "mail-type=END", "--comment=it's"])
def test_directives_must_be_one_option_line(text: str) -> None:
    with pytest.raises(BadInputError, match="--directive"):
        request_rules.check_directives(SLURM, [text])


def test_a_qos_is_a_directive_only_where_the_profile_lists_none() -> None:
    request_rules.check_directives(SLURM, ["--qos=debug"], QUEUES)
    for text in ("--qos=debug", "-q debug", "-qdebug", "--hold --qos debug"):
        with pytest.raises(BadInputError, match="use --partition, which takes the QOS dev"):
            request_rules.check_directives(SLURM, [text], {**QUEUES, "dev": Queue(kind="qos")})


@in_one_test("text", ["--mail-tpye=END", "--exlcusive", "--hold --contraint=a", "--depedency=1"])
def test_misspelt_directives_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="did you mean --"):
        request_rules.check_directives(SLURM, [text])


@in_one_test("text", ["--mail-typ=END", "--uenv=a:b", "--our-plugin=1", "--gres=nvme:1", "--external"])
def test_beginnings_and_options_of_plugins_pass(text: str) -> None:
    request_rules.check_directives(SLURM, [text])


def ask(**asked: Any) -> JobRequest:
    return JobRequest(site="here", command=Command(argv=("true",)), **asked)


@in_one_test("seconds", [-5, 0, 3601])
def test_the_time_between_two_looks_has_limits_in_job_files_too(seconds: int) -> None:
    with pytest.raises(BadInputError, match="from 1 to 3600"):
        request_rules.check_request(SLURM, ask(sample=seconds), {})
    request_rules.check_request(SLURM, ask(sample=5), {})


def test_masks_need_whole_nodes() -> None:
    shared = request_rules.choose_queue(profile(), "short", 1, 60)
    whole = request_rules.choose_queue(profile(), "prod", 2, 60)
    request_rules.check_whole_node(profile(), shared, ask())
    request_rules.check_whole_node(profile(), whole, ask(exclusive=False))
    for request in (ask(exclusive=False), ask(directives=("--oversubscribe",))):
        with pytest.raises(SiteRuleError, match="valid on whole nodes only") as error:
            request_rules.check_whole_node(profile(), shared, request)
        assert PAGE in str(error.value)


def test_an_account_that_only_the_command_line_takes_is_not_in_the_script(tmp_path: Path) -> None:
    words = ("submit", "--site", "abci", "--account", "group1", "--dry-run", "--", "./a")
    assert "group1" not in hpclaunch_here(*words, folder=tmp_path).stdout
