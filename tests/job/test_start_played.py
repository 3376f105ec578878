"""Submitting a job on a host whose programs are played: each answer, and what the record then says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import NoAnswerError
from hpclaunch.job.start_job import (
    git_commit,
    job_root,
    not_submitted_if_it_fails,
    submit_job,
    try_submission,
)
from hpclaunch.job.store import Store
from hpclaunch.plan.layout import JobPlace, LaunchPlan
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.scheduler.registry import get_scheduler
from tests.in_one_test import in_one_test
from tests.job.played_slurm import Notes, PlayedJob, PlayedSlurm, script_of
from tests.profiles import shipped
from tests.testbed.kit import new_record

SLURM = get_scheduler("slurm")


class Played(PlayedSlurm):
    """Programs other than Slurm's answer as ``answers`` says: the first that is in the words."""

    def __init__(self, answers: Mapping[str, CommandResult | RefusedError]) -> None:
        super().__init__()
        self.answers = answers
        self.words: list[Sequence[str]] = []

    def answer(self, argv: Sequence[str]) -> CommandResult | None:
        self.words.append(argv)
        for word, answer in self.answers.items():
            if any(word in one for one in argv):
                if isinstance(answer, RefusedError):
                    raise answer
                return answer
        return super().answer(argv)


def said(stdout: str = "", stderr: str = "", code: int = 0) -> CommandResult:
    return CommandResult(exit_code=code, stdout=stdout, stderr=stderr)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def test_a_job_that_slurm_takes_is_queued_with_its_number_and_its_cluster(store: Store) -> None:
    record, notes = new_record(store, "slurm", store.root), Notes()
    host = Played({"hpclaunch-submit": said("17\n")})
    host.jobs["17"] = PlayedJob(script_of(record), ["PENDING"])
    found = submit_job(store, host, SLURM, record, "#!/bin/bash\n", notes)
    assert (found.state, found.scheduler_id, found.cluster, found.started) == ("queued", "17", "east", None)
    assert store.load(record.id) == found
    script = Path(script_of(record))
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("#!/bin/bash\n", 0o755)
    assert notes.texts == []


def test_a_job_without_a_queue_runs_at_once(store: Store) -> None:
    record = new_record(store, "local", store.root)
    host = Played({"hpclaunch-submit": said("4711:99\n")})
    found = submit_job(store, host, get_scheduler("local"), record, "#!/bin/bash\n", Notes())
    assert (found.state, found.scheduler_id, found.identity) == ("running", "4711:99", None)
    assert found.started is not None


def test_a_refused_job_has_failed_with_the_schedulers_words(store: Store) -> None:
    record = new_record(store, "slurm", store.root)
    host = Played({"hpclaunch-submit": said("", "sbatch: error: Invalid account", 1)})
    with pytest.raises(RefusedError, match="Invalid account"):
        submit_job(store, host, SLURM, record, "#!/bin/bash\n", Notes())
    found = store.load(record.id)
    assert (found.state, found.scheduler_id, found.ended is not None) == ("failed", None, True)
    assert "Invalid account" in (found.reason or "")


def test_a_job_whose_submission_gave_no_answer_may_have_been_submitted(store: Store) -> None:
    record = new_record(store, "slurm", store.root)
    host = Played({"hpclaunch-submit": NoAnswerError("sbatch gave no answer in 600 s")})
    with pytest.raises(NoAnswerError):
        submit_job(store, host, SLURM, record, "#!/bin/bash\n", Notes())
    found = store.load(record.id)
    assert (found.state, found.ended) == ("created", None)
    assert found.reason == "sbatch gave no answer in 600 s; it may have been submitted or not"


@in_one_test(
    "error, why",
    [
        (BadInputError("no such file"), "no such file"),
        (RefusedError("no room"), "no room"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_what_fails_before_the_submission_submits_nothing(
    error: BaseException, why: str, store: Store
) -> None:
    record = new_record(store, "slurm", store.root)
    with pytest.raises(type(error)), not_submitted_if_it_fails(store, record, Notes()):
        raise error
    found = store.load(record.id)
    assert (found.state, found.reason) == ("failed", f"nothing was submitted: {why}")
    assert found.ended is not None


@in_one_test(
    "answer, commit",
    [
        (said("# branch.oid 1a2b\n# branch.head main\n"), "1a2b"),
        (said("# branch.oid 1a2b\n# branch.head main\n1 .M N... a.py\n"), "1a2b-dirty"),
        (said("# branch.oid (initial)\n# branch.head main\n"), None),
        (said("# branch.oid 1a2b\n", "fatal: not a git repository", 128), None),
        (RefusedError("git is not there"), None),
    ],
)
def test_the_commit_of_a_folder(answer: CommandResult | RefusedError, commit: str | None) -> None:
    assert git_commit(Played({"git": answer}), "/code") == commit


def plan_of(**asked: Any) -> LaunchPlan:
    request = JobRequest(site="generic-slurm", command=Command(argv=("./a",)), nodes=2, queue="fast", **asked)
    return make_plan(request, shipped("generic-slurm"), None, JobPlace())


def test_slurm_is_asked_before_and_its_estimate_noted() -> None:
    notes = Notes()
    text = (
        "sbatch: Job 17 to start at 2026-12-01T10:00:00 using 8 processors on nodes n[1-2] in partition fast"
    )
    host = Played({"sbatch": said("", text)})
    try_submission(host, SLURM, plan_of(), "#!/bin/bash\n", notes)
    assert notes.texts == ["expected to start at 2026-12-01T10:00:00 on n[1-2] (partition fast)"]
    try_submission(host, get_scheduler("local"), plan_of(), "", notes)
    assert len(notes.texts) == len(host.words) == 1, "this machine refuses nothing"


def test_a_refusal_of_the_trial_is_final_unless_nodes_are_only_away() -> None:
    def tried(refusal: str, nodes: str = "") -> list[str]:
        notes = Notes()
        host = Played({"sbatch": said("", f"sbatch: error: {refusal}", 1), "sinfo": said(nodes)})
        try_submission(host, SLURM, plan_of(), "#!/bin/bash\n", notes)
        return notes.texts

    away = "Requested node configuration is not available"
    (said_of,) = tried(away, "n1|idle|fast\nn2|drain|fast\nn3|down*|fast\n")
    assert "but only for now: of 3 nodes 2 are away (n2 drain, n3 down*): the job waits" in said_of
    for nodes in ("n1|idle|fast\nn2|alloc|fast\nn3|down|fast\n", "n1|down|fast\n", ""):
        with pytest.raises(RefusedError, match="configuration is not available"):
            tried(away, nodes)  # two are there; or there were never two
    with pytest.raises(RefusedError, match="Invalid account"):
        tried("Batch job submission failed: Invalid account or account/partition combination specified")
    host = Played({"sbatch": NoAnswerError("sbatch gave no answer in 120 seconds")})
    with pytest.raises(RefusedError, match="in 120 seconds"):
        try_submission(host, SLURM, plan_of(), "#!/bin/bash\n", Notes())


def root_of(
    remote_dir: str | None, job_folder: str | None, answer: Callable[[str], CommandResult]
) -> tuple[str, list[str]]:
    """The folder of jobs, and what the user was told."""
    profile, notes = shipped("generic-slurm"), Notes()
    if job_folder:
        area = next(iter(shipped("lumi-g").storage.values()))
        profile = replace(profile, storage={"scratch": replace(area, job_folder=job_folder)})
    request = JobRequest(site="x", command=Command(argv=("./a",)), remote_dir=remote_dir)
    host = Played({"usable_folder": answer("")})
    return job_root(host, request, profile, notes), notes.texts


def test_the_folder_of_jobs_on_another_machine_is_the_requested_one_or_the_sites() -> None:
    def made(_: str) -> CommandResult:
        return said("/scratch/me/hpclaunch")

    def refused(_: str) -> CommandResult:
        return said("", "mkdir: Permission denied\n", 1)

    assert root_of("$SCRATCH/mine", None, made) == ("/scratch/me/hpclaunch", [])
    with pytest.raises(BadInputError, match="Permission denied"):
        root_of("/data/mine", None, refused)
    assert root_of(None, "$SCRATCH", made) == ("/scratch/me/hpclaunch", [])
