"""One set of readers for all versions of Slurm.

tests/data/slurm/answers-VERSION.json hold what real ones of 22.05 and 25.05 answered, written by
tests/testbed/record_slurm.py. DOCUMENTED has what the versions between print otherwise, by their sources:
documented, not recorded.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.failures.failed_ranks import first_failed_rank
from hpclaunch.failures.known_errors import SLURM_ENDS, SLURM_SAYS
from hpclaunch.scheduler.scheduler_interface import JobStatus
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from tests.in_one_test import in_one_test
from tests.testbed.record_slurm import DATA, JOBS, NEVER, UNKNOWN

RECORDED = ("22.05.8", "25.05.8")
DOCUMENTED = {
    # src/squeue/print.c, src/api/job_info.c and src/scontrol/info_job.c, src/common/log.c, src/api/allocate.c
    # at the tags slurm-23-02-8-1, slurm-23-11-11-1, slurm-24-05-8-1, slurm-24-11-7-1.
    version: {
        "squeue code": "3:0",
        "scontrol": "JobState=NODE_FAIL Reason=NodeDown FailedNode=n4 ExitCode=0:1 ",
        "log": "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-21T07:59:40 DUE TO TIME LIMIT ***",
        "log with format_stderr": stamped,
        "trial": "sbatch: Job 7 to start at 1795408891 using 2 processors on nodes n2 in partition standard",
    }
    for version, stamped in {
        "23.02": None,
        **dict.fromkeys(
            ("23.11", "24.05", "24.11"),
            "[2026-11-21T07:59:40.123] error: *** JOB 11 ON n1 CANCELLED AT 2026-11-21T07:59:40 ***",
        ),
    }.items()
}

# State and exit code of each job of the recorder.
EXPECTED = {
    "done": ("done", 0),
    "failed": ("failed", 3),
    "killed": ("failed", 137),
    "array": ("failed", None),
    "held": ("queued", None),
    "held_array": ("queued", None),
    "later": ("queued", None),
    "cancelled": ("cancelled", 143),
    "cancelled_early": ("cancelled", None),
    "running": ("running", None),
    "time_limit": ("failed", 143),
    "rank_failed": ("failed", 143),
    "node_failed": ("failed", None),
    "never": ("queued", None),
}
SACCT = {"cancelled": ("cancelled", None), "time_limit": ("failed", None), "rank_failed": ("failed", 15)}
"""Where sacct knows no signal, or has it as the exit status."""


class Answers:
    """The recorded answers of one version."""

    def __init__(self, version: str) -> None:
        """Read them."""
        self.document: dict[str, Any] = json.loads((DATA / f"answers-{version}.json").read_text())
        self.jobs: dict[str, str] = self.document["jobs"]
        self.names = {number: name for name, number in self.jobs.items()}

    def answer(self, scenario: str) -> CommandResult:
        """Return one answer."""
        kept = self.document["answers"][scenario]
        return CommandResult(exit_code=kept["exit_code"], stdout=kept["stdout"], stderr=kept["stderr"])

    def argv(self, scenario: str) -> tuple[str, ...]:
        """Return the command that was asked."""
        return tuple(self.document["answers"][scenario]["argv"])

    def states(self, scenario: str) -> dict[str, JobStatus]:
        """Return what one answer means, by the jobs' names."""
        source, ids = scenario.split()[0], list(self.jobs.values())
        return {self.names[i]: s for i, s in SLURM.parse_status(source, ids, self.answer(scenario)).items()}


@pytest.fixture(params=RECORDED)
def recorded(request: pytest.FixtureRequest) -> Answers:
    return Answers(request.param)


def test_the_recorder_asked_what_is_asked_today(recorded: Answers) -> None:
    """Else the answers are of no use: run it again, on each version."""
    numbers = list(recorded.jobs.values())
    assert [*recorded.jobs] == [*JOBS, NEVER] == [*EXPECTED]
    for source in ("squeue", "sacct"):
        assert (recorded.argv(source),) == SLURM.status_commands(source, numbers)
    for name, number in recorded.jobs.items():
        assert (recorded.argv(f"scontrol {name}"),) == SLURM.status_commands("scontrol", [number])
    assert recorded.argv("find") == SLURM.find
    assert recorded.argv("queues") == SLURM.facts_commands["queues"]


def test_states_and_exit_codes(recorded: Answers) -> None:
    squeue, sacct = recorded.states("squeue"), recorded.states("sacct")
    assert {name: (status.state, status.exit_code) for name, status in squeue.items()} == EXPECTED
    assert {name: (status.state, status.exit_code) for name, status in sacct.items()} == EXPECTED | SACCT
    for name, status in squeue.items():
        shown = recorded.states(f"scontrol {name}")[name]
        for field in ("state", "exit_code", "reason", "started", "ended"):
            assert getattr(shown, field) == getattr(status, field), name
        ran = status.state in ("done", "failed", "cancelled") and name not in ("array", "cancelled_early")
        assert (status.started is not None) == (ran or status.state == "running"), name
    reasons = {name: status.reason or "" for name, status in squeue.items()}
    assert reasons["never"].startswith("DependencyNeverSatisfied: ")
    assert reasons["held"].startswith("JobHeldUser: ")
    assert reasons["later"].startswith("BeginTime: ")
    assert reasons["time_limit"].startswith("TIMEOUT: ")
    assert reasons["node_failed"].startswith("NODE_FAIL: ")
    for source in SLURM.status_sources:
        assert recorded.states(f"{source} unknown") == {}


def test_no_controller_is_no_answer(recorded: Answers) -> None:
    for source in ("squeue", "scontrol"):
        with pytest.raises(RefusedError, match="Unable to contact slurm controller"):
            recorded.states(f"{source} without controller")


def test_submission_and_cancelling(recorded: Answers) -> None:
    for name, number in recorded.jobs.items():
        assert SLURM.parse_submit(recorded.answer(f"submit {name}")) == number
        assert SLURM.parse_found(f"/lab/{name}.sh", recorded.answer("find")) == number
    for name in ("cancelled", "cancelled_early", "unknown"):
        SLURM.parse_cancel(recorded.answer(f"cancel {name}"))
    for scenario, words in (
        ("refused", "invalid partition specified: nosuch"),
        ("wrong", "unrecognized option"),
    ):
        with pytest.raises(RefusedError, match=words):
            SLURM.parse_submit(recorded.answer(f"submit {scenario}"))
    assert UNKNOWN in recorded.argv("cancel unknown")


def test_trials(recorded: Answers) -> None:
    assert SLURM.trial is not None
    estimate = SLURM.trial.parse(recorded.answer("trial")) or ""
    assert re.fullmatch(r"expected to start at \d{4}-.* on n\d \(partition standard\)", estimate)
    for scenario, words in (
        ("partition", "invalid partition"),
        ("nodes", "Node count specification invalid"),
    ):
        with pytest.raises(RefusedError, match=words):
            SLURM.trial.parse(recorded.answer(f"trial {scenario}"))


@in_one_test(
    "words, silent",
    [
        ("allocation failure: Socket timed out on send/recv operation", True),
        ("allocation failure: Unable to contact slurm controller (connect failure)", True),
        ("allocation failure: Requested partition configuration not available now", False),
    ],
)
def test_a_slurm_that_does_not_answer_has_not_refused(words: str, silent: bool) -> None:
    assert SLURM.trial is not None
    said = "sbatch gives no answer: " if silent else "Slurm would refuse the job: "
    with pytest.raises(RefusedError, match=f"^{said}"):
        SLURM.trial.parse(CommandResult(exit_code=1, stdout="", stderr=f"{words}\n"))


def test_accounting(recorded: Answers) -> None:
    assert SLURM.accounting is not None

    def jobs(name: str) -> tuple[Any, ...]:
        assert SLURM.accounting is not None
        return SLURM.accounting.parse(recorded.jobs[name], recorded.answer(f"accounting {name}"))

    (failed,) = jobs("failed")
    assert (failed.name, failed.state, failed.exit_code) == ("a | b", "failed", 3)
    assert [(job.id[-2:], job.exit_code) for job in jobs("array")] == [("_1", 0), ("_2", 1), ("_3", 2)]
    (limited,) = jobs("time_limit")
    assert (limited.limit_s, limited.nodes) == (60, 1)
    assert limited.elapsed_s >= 60
    assert limited.peak_memory > 1 << 20
    assert jobs("running")[0].state == "running"


def test_steps_that_looked_at_running_ranks_do_not_stand_for_them() -> None:
    """As sacct 22.05.8 lists a running job that srun --overlap looked into: its ranks have no figures."""
    assert SLURM.accounting is not None
    dates = "1795946690|1795946691"
    rows = (
        f"7|{{state}}|0:0|{dates}|{{end}}|52|30|2|cpu=4,mem=16G|00:01.058|||halo",
        f"7.batch|{{state}}|0:0|{dates}|{{end}}|52||1|cpu=2|00:00:00|{{batch}}||batch",
        f"7.0|{{state}}|0:0|{dates}|{{end}}|52||2|cpu=4|00:00:00|{{ranks}}||bash",
        f"7.2|COMPLETED|0:0|{dates}|1795946710|3||2|cpu=4|00:00.179|99999999||hpclaunch-look",
        f"7.1|COMPLETED|0:0|{dates}|1795946710|3||2|cpu=4|00:00.179|17010688||python3",
    )

    def read(**words: str) -> tuple[Any, Any]:
        assert SLURM.accounting is not None
        text = "\n".join(rows).format(**words)
        (job,) = SLURM.accounting.parse("7", CommandResult(exit_code=0, stdout=text, stderr=""))
        return job.cpu_s, job.peak_memory

    assert read(state="RUNNING", end="Unknown", batch="", ranks="") == (None, None)
    ended = read(state="COMPLETED", end="1795946743", batch="99999999", ranks="61756000")
    assert ended == (1.058, 61756000)


def test_looking_into_a_job(recorded: Answers) -> None:
    assert SLURM.attach is not None
    found = SLURM.attach.parse("1", recorded.answer("attach running"))
    assert (found.id, len(found.nodes)) == (recorded.jobs["running"], 1)
    with pytest.raises(BadInputError, match=r"PENDING \(JobHeldUser\)"):
        SLURM.attach.parse("1", recorded.answer("attach held"))
    with pytest.raises(BadInputError, match="it has ended"):
        SLURM.attach.parse("1", recorded.answer("attach failed"))


def test_partitions_and_plugins(recorded: Answers) -> None:
    standard, dev = SLURM.parse_facts({"queues": recorded.answer("queues")}).queues
    assert (standard.name, standard.max_nodes, standard.max_walltime) == ("standard", 4, "2-00:00:00")
    assert (dev.name, dev.max_nodes, dev.max_walltime) == ("dev", 1, "00:30:00")
    plugins = recorded.answer("plugins")
    assert {"pmix", "pmi2", "none", "cray_shasta"} <= set((plugins.stdout + plugins.stderr).split())


def test_slurms_own_lines_in_logs(recorded: Answers) -> None:
    logs: dict[str, list[str]] = recorded.document["logs"]
    for name, lines in logs.items():
        own = [line for line in lines if not re.search(SLURM_SAYS, line)]
        assert set(own) <= (
            {"at work", "Terminated"} if name == "time_limit" else set()
        )  # the latter is sh's
    for name in ("cancelled", "time_limit", "rank_failed"):
        assert any(re.search(SLURM_ENDS, line) for line in logs[name])
    first = first_failed_rank("\n".join(logs["rank_failed"]))
    assert first is not None
    assert (first.rank, first.exit_code) == ("1", 7)


def test_the_node_that_failed_is_named_in_the_log_or_by_scontrol(recorded: Answers) -> None:
    named = SLURM.parse_failed_nodes(recorded.answer("scontrol node_failed"))
    log = "\n".join(recorded.document["logs"]["node_failed"])
    assert named == ("n4",) or "Node failure on n4" in log
    assert SLURM.parse_failed_nodes(recorded.answer("scontrol done")) == ()


@in_one_test("version", DOCUMENTED)
def test_versions_between_are_read_as_their_sources_print(version: str) -> None:
    text = DOCUMENTED[version]
    columns = (
        ("7", 60),
        ("FAILED", 24),
        (text["squeue code"] or "", 16),
        ("1", 24),
        ("2", 24),
        ("None", 240),
    )
    row = "".join(value.ljust(width) for value, width in columns)
    status = SLURM.parse_status("squeue", ["7"], CommandResult(exit_code=0, stdout=row, stderr=""))["7"]
    assert (status.state, status.exit_code) == ("failed", 3)
    shown = CommandResult(exit_code=0, stdout=f"JobId=7 {text['scontrol']}\n", stderr="")
    assert SLURM.parse_failed_nodes(shown) == ("n4",)
    assert SLURM.parse_status("scontrol", ["7"], shown)["7"].exit_code is None
    for line in filter(None, (text["log"], text["log with format_stderr"])):
        assert re.search(SLURM_SAYS, line)
        assert re.search(SLURM_ENDS, line)
    assert SLURM.trial is not None
    answer = CommandResult(exit_code=0, stdout="", stderr=text["trial"] or "")
    assert "on n2 (partition standard)" in (SLURM.trial.parse(answer) or "")


@in_one_test(
    "line",
    [
        "[2026-11-23T01:24:44.537] error: loss is nan",
        "[2026-11-23T01:24:44.537] error: *** training diverged ***",
        "[2026-11-23 01:24:44,537] error: step 7 failed",
        "[rank0] error: train: step 7",
        "[7] fatal: out of memory",
    ],
)
def test_lines_of_programs_are_not_slurms(line: str) -> None:
    assert not re.search(SLURM_SAYS, line)
