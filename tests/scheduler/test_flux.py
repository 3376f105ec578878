"""Flux: its header and launcher, and its answers, recorded by others or computed by its own code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.failures.failed_ranks import failed_ranks
from hpclaunch.failures.known_errors import log_words
from hpclaunch.job.template_files import script_templates
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.scheduler.flux import SCHEDULER as FLUX
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus
from hpclaunch.site.load_profile import load_site
from tests.in_one_test import in_one_test
from tests.scripts import bare

DATA = Path(__file__).parents[1] / "data" / "flux"
ANSWERS: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "answers.yaml").read_text("utf-8"))
RECORDED: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "answers-0.88.0.yaml").read_text("utf-8"))


def recorded(name: str, answers: dict[str, dict[str, Any]] = ANSWERS) -> CommandResult:
    one = {"exit_code": 0, "stdout": "", "stderr": "", **answers[name]}
    return CommandResult(exit_code=one["exit_code"], stdout=one["stdout"], stderr=one["stderr"])


def plain(job: dict[str, Any]) -> str:
    return str(job["jobid"]).replace("ƒ", "f")


def status(job: dict[str, Any]) -> JobStatus:
    answer = CommandResult(exit_code=0, stdout=json.dumps(job), stderr="")
    return FLUX.parse_status("jobs", [plain(job)], answer)[plain(job)]


@in_one_test(
    "name, state, exit_code, words",
    [
        ("running", "running", None, None),
        ("pending", "queued", None, None),
        ("held", "queued", None, "flux job urgency ID default"),
        ("depending", "queued", None, "it waits for another job to end (after-success=ƒ2RsQrcw)"),
        ("done", "done", 0, None),
        ("failed", "failed", 42, "the script ended with exit status 42"),
        ("cancelled", "cancelled", 143, None),
        ("cancelled-before-it-ran", "cancelled", None, "interrupted by ctrl-C"),
    ],
)
def test_recorded_states(name: str, state: JobState, exit_code: int | None, words: str | None) -> None:
    answer = recorded(name)
    job = plain(json.loads(answer.stdout))
    found = FLUX.parse_status("jobs", [job], answer)[job]
    assert (found.state, found.exit_code) == (state, exit_code)
    assert words in (found.reason or "") if words else found.reason is None


@in_one_test(
    "changes, state, exit_code, words",
    [
        ({"status": "TIMEOUT", "returncode": 143}, "failed", 143, "it reached its walltime"),
        ({"status": "FAILED", "returncode": -9}, "failed", 137, "exit status 137"),
        (
            {"status": "FAILED", "exception": {"type": "dependency", "note": "cannot be met"}, "t_run": 0},
            "failed",
            None,
            "dependency: cannot be met: it ended without having run",
        ),
        (
            {"status": "FAILED", "exception": {"type": "node-failure", "note": "lost n7"}},
            "failed",
            42,
            "node-failure: lost n7",
        ),
        ({"status": "CLEANUP"}, "running", None, "it is ending"),
        ({"status": "PRIORITY"}, "queued", None, ""),
        (
            {"status": "SCHED", "annotations": {"sched": {"reason_pending": "no cores"}}},
            "queued",
            None,
            "no cores",
        ),
        ({"status": "FROZEN"}, "running", None, "Flux calls its state 'FROZEN'"),
    ],
)
def test_further_documented_states(
    changes: dict[str, Any], state: JobState, exit_code: int | None, words: str
) -> None:
    found = status({**json.loads(ANSWERS["failed"]["stdout"]), **changes})
    assert (found.state, found.exit_code) == (state, exit_code)
    assert words in (found.reason or "")


def test_times_have_their_zone() -> None:
    found = status(json.loads(ANSWERS["failed"]["stdout"]))
    assert found.started is not None
    assert found.ended is not None
    assert re.fullmatch(r"2020-12-1\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", found.started)


def test_several_jobs_are_a_list_and_the_unknown_are_left_out() -> None:
    jobs = [json.loads(ANSWERS[name]["stdout"]) for name in ("running", "done")]
    answer = CommandResult(exit_code=1, stdout=json.dumps({"jobs": jobs}), stderr="JobID 999999 unknown\n")
    found = FLUX.parse_status("jobs", ["fiFkbMhFM", "fkgSNJqVH", "f68GN"], answer)
    assert {job: one.state for job, one in found.items()} == {"fiFkbMhFM": "running", "fkgSNJqVH": "done"}
    assert FLUX.status_commands("jobs", ["f1", "f2"]) == (("flux", "jobs", "--json", "f1", "f2"),)


def test_a_forgotten_job_is_unknown_and_a_flux_that_is_down_is_an_error() -> None:
    assert FLUX.parse_status("jobs", ["f68GN"], recorded("unknown")) == {}
    down = CommandResult(exit_code=1, stdout="", stderr="flux-jobs: ERROR: Unable to connect to Flux\n")
    texts = ("{", "", "maintenance", "{}", "7")
    rubbish = [CommandResult(exit_code=0, stdout=text, stderr="") for text in texts]
    for answer in (down, *rubbish):
        with pytest.raises(RefusedError, match="flux jobs gives"):
            FLUX.parse_status("jobs", ["f68GN"], answer)


def test_the_instance_and_the_time_of_submission_tell_a_job_from_another() -> None:
    assert status(json.loads(ANSWERS["failed"]["stdout"])).identity.submitted is not None
    for text, expected in (("tuolumne[1001-1004]\n/\n", "tuolumne[1001-1004]"), ("n1\n/fA1b\n", "n1/fA1b")):
        assert FLUX.parse_cluster(CommandResult(exit_code=0, stdout=text, stderr="")) == expected
    with pytest.raises(RefusedError, match="Flux does not name its instance"):
        FLUX.parse_cluster(CommandResult(exit_code=1, stdout="", stderr="flux-getattr: ERROR: no"))


def test_submitting() -> None:
    assert FLUX.parse_submit(recorded("submitted")) == "fiFkbMhFM"
    ascii_only = CommandResult(exit_code=0, stdout="a word of the site\nfiFkbMhFM\n", stderr="")
    assert FLUX.parse_submit(ascii_only) == "fiFkbMhFM"
    with pytest.raises(RefusedError, match=r"Flux refused the job: Number of slots"):
        FLUX.parse_submit(recorded("refused"))


def test_cancelling() -> None:
    FLUX.parse_cancel(recorded("cancelling-the-unknown"))
    FLUX.parse_cancel(CommandResult(exit_code=0, stdout="", stderr=""))
    denied = CommandResult(exit_code=1, stdout="", stderr="flux-cancel: ERROR: f2: Operation not permitted\n")
    with pytest.raises(RefusedError, match="Flux did not cancel the job: f2: Operation not permitted"):
        FLUX.parse_cancel(denied)


@in_one_test(
    "text, is_id",
    [("ƒiFkbMhFM", True), ("fiFkbMhFM", True), ("91088924704768", True), ("last", False), ("f0O", False)],
)
def test_ids_as_users_write_them(text: str, is_id: bool) -> None:
    assert bool(re.fullmatch(FLUX.id_pattern, text)) == is_id


# --- scripts -----------------------------------------------------------------------------------------------


def script(**asked: Any) -> str:
    request = JobRequest(site="generic-flux", command=Command(argv=("./train",)), **{"name": "try", **asked})
    place = JobPlace()
    return render(make_plan(request, load_site("generic-flux"), None, place), place, script_templates())


def options(text: str) -> list[str]:
    return re.findall(r"^#flux: (.*)$", bare(text), re.MULTILINE)


def test_slots_are_nodes_or_ranks() -> None:
    asked: dict[str, Any] = {"nodes": 2, "tasks_per_node": 4, "gpus_per_task": 1, "cpus_per_task": 3}
    whole = options(script(**asked))
    assert {"--nodes=2", "--exclusive", "--gpus-per-slot=4"} <= set(whole)
    assert not [option for option in whole if option.startswith(("--nslots", "--cores"))]
    shared = set(options(script(**asked, exclusive=False)))
    assert {"--nodes=2", "--nslots=8", "--cores-per-slot=3", "--gpus-per-slot=1"} <= shared


def test_each_dependency_is_an_option() -> None:
    found = options(script(after=("f12", "34"), after_any=True))
    assert found[-2:] == ["--dependency=afterany:f12", "--dependency=afterany:34"]


def test_directives_are_together_and_no_later_line_looks_like_one() -> None:
    """RFC 36: one that comes after the first command is an error, as is another prefix."""
    lines = script(nodes=2, name="two words", after=("f12",), queue="debug", preflight=True).splitlines()
    marked = [number for number, line in enumerate(lines) if re.match(r"[^\w]*(flux|FLUX):", line)]
    assert all(lines[number].startswith("#flux: --") for number in marked)
    assert all(line.startswith("#") for line in lines[: marked[-1]])
    # Flux (0.88, job/directives.py) reads them so, comments left out.
    assert shlex.split(lines[marked[0]].removeprefix("#flux: "), comments=True) == ["--job-name=two words"]


def test_ranks_that_bind_themselves_are_not_bound_by_flux() -> None:
    launcher = FLUX.launcher("flux")
    assert launcher is not None
    usual = Launch(nodes=2, tasks_per_node=4)
    words = " ".join(launcher.words(usual))
    assert words == "flux run --nodes=2 --tasks-per-node=4 --exclusive -o exit-timeout=none -o exit-on-error"
    bound = launcher.words(Launch(nodes=2, tasks_per_node=4, ranks_bind=True, mpi_plugin="pmix"))
    assert " ".join(bound) == f"{words} -o cpu-affinity=off -o gpu-affinity=off -o pmi=pmix"
    assert "exit-on-error" not in launcher.one_per_node(2)


@in_one_test(
    "asked, words",
    [
        ({"array": "1-3%2"}, "Flux has no limit for the jobs of an array that run at once"),
        ({"array": "1-3", "max_restarts": 1}, "--array and --max-restarts do not go together on Flux"),
        ({"exclude": ("n1",)}, "Flux leaves nodes out by constraints that hpclaunch does not write"),
        ({"name": "it's"}, "without line breaks, backslashes and quotes"),
        ({"directives": ("-N4",)}, "use --nodes"),
        ({"directives": ("--dependency=afterok:f1",)}, "use --after"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        script(**asked)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_path_with_a_meaning_of_its_own_is_refused() -> None:
    request = JobRequest(site="generic-flux", command=Command(argv=("x",)))
    for folder in ("/home/{{id}}", "/home/it's"):
        with pytest.raises(BadInputError, match="cannot stand in a directive of Flux"):
            make_plan(request, load_site("generic-flux"), None, JobPlace(folder=folder, job_id="1"))
    plan = make_plan(request, load_site("generic-flux"), None, JobPlace(folder="/home/a b", job_id="1"))
    assert "--output='/home/a b/out.log'" in [line.text for line in plan.header]


# --- answers and lines recorded from 0.88.0 -----------------------------------------------------------------


def answer_of(name: str) -> CommandResult:
    return recorded(name, RECORDED)


@in_one_test(
    "name, state, exit_code, words",
    [
        ("running", "running", None, ""),
        ("pending", "queued", None, ""),
        ("held", "queued", None, "it is held"),
        ("depending", "queued", None, "it waits for another job to end (after-success="),
        ("done", "done", 0, ""),
        ("failed", "failed", 3, "the script ended with exit status 3"),
        ("timeout", "failed", 142, "it reached its walltime"),
        ("cancelled", "cancelled", 143, ""),
        ("cancelled-before-it-ran", "cancelled", None, ""),
        ("dependency-failed", "failed", None, "can never be satisfied: it ended without having run"),
        ("unsatisfiable", "failed", None, "need 9 exclusive node(s), only 2 eligible"),
    ],
)
def test_states_as_recorded(name: str, state: JobState, exit_code: int | None, words: str) -> None:
    answer = answer_of(name)
    job = json.loads(answer.stdout)["jobid"].replace("ƒ", "f")
    found = FLUX.parse_status("jobs", [job], answer)[job]
    assert (found.state, found.exit_code) == (state, exit_code)
    assert words in (found.reason or "")


def test_an_array_has_the_states_of_its_jobs() -> None:
    answer = answer_of("two-and-an-unknown")
    done, failed = (job["jobid"].replace("ƒ", "f") for job in json.loads(answer.stdout)["jobs"])
    array = f"{done}_0.fABC_1.{failed}_7"
    assert FLUX.parse_submit(CommandResult(exit_code=0, stdout=array.replace(".", "\n"), stderr="")) == array
    assert FLUX.is_id(array)
    assert FLUX.status_commands("jobs", [array, "f1"]) == (
        ("flux", "jobs", "--json", done, "fABC", failed, "f1"),
    )
    found = FLUX.parse_status("jobs", [array], answer)[array]
    assert {index: job.state for index, job in found.jobs.items()} == {0: "done", 7: "failed"}
    assert FLUX.cancel_command(array) == ("flux", "cancel", done, "fABC", failed)
    assert FLUX.attach is not None
    assert FLUX.attach.query(f"{array}_7") == ("flux", "jobs", "--json", failed)
    header = script(after=(array,))
    assert f"#flux: --dependency=afterok:{done}" in header


@in_one_test("name", ["refused-queue", "refused-after-failed", "refused-after-unknown", "not-reachable"])
def test_refusals_as_recorded(name: str) -> None:
    with pytest.raises(RefusedError, match=r"Flux refused the job: .*(queue|failed or was|not found)"):
        FLUX.parse_submit(answer_of(name))


def test_cancelling_as_recorded() -> None:
    FLUX.parse_cancel(answer_of("cancelling-the-unknown"))
    FLUX.parse_cancel(answer_of("cancelling-the-ended"))
    ended = RECORDED["cancelling-the-ended"]["stderr"]
    refused = "flux-cancel: ERROR: f2: Operation not permitted\n"
    denied = CommandResult(exit_code=1, stdout="", stderr=ended + refused)
    with pytest.raises(RefusedError, match="Operation not permitted"):
        FLUX.parse_cancel(denied)


def test_the_first_failed_rank_of_a_recorded_log() -> None:
    log = RECORDED["log"]["stdout"]
    parts = {part.partition("\n")[0]: part for part in log.split("\n# ")}
    usual = failed_ranks(parts["# -o exit-timeout=none -o exit-on-error"])
    assert [(rank.rank, rank.node, rank.exit_code) for rank in usual] == [("1", "vm", 7)]
    assert [rank.exit_code for rank in failed_ranks(parts["-o exit-timeout=2s"])] == [7]
    killed = next(text for name, text in parts.items() if "SIGSEGV" in name)
    assert [rank.exit_code for rank in failed_ranks(killed)] == [139]
    assert failed_ranks("hpclaunch: task rank 3 on host n1 failed (Exit 7)")[0][:3] == ("3", "n1", 7)
    grep = re.compile(log_words("rank_lines").pattern.replace("[^ ]", r"\S"))
    assert all(grep.search(line) for line in log.splitlines() if "FATAL" in line)
    limit = "59.2s: flux-shell[0]: FATAL: task-exit: x: task rank 0 on host n1 failed (Alarm clock)"
    assert not failed_ranks(limit)
