"""PBS' words into data: on outputs recorded from OpenPBS 23.06.06."""

from __future__ import annotations

import datetime as dt
import shlex
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus
from tests.in_one_test import in_one_test

DATA = Path(__file__).parents[1] / "data" / "pbs"


def recorded(name: str) -> tuple[list[str], CommandResult]:
    """Return the words of a recorded command and its answer, decoded as a host decodes it."""
    folder = DATA / name
    texts = {part: (folder / part).read_bytes().decode(errors="replace") for part in ("stdout", "stderr")}
    return shlex.split((folder / "cmd").read_text()), CommandResult(
        exit_code=int((folder / "rc").read_text()), **texts
    )


def status(name: str) -> JobStatus:
    """Return the status of the one job that the recorded command asks for."""
    words, answer = recorded(name)
    known = PBS.parse_status("json" if "json" in words else "text", [words[-1]], answer)
    assert set(known) == {words[-1]}
    return known[words[-1]]


@in_one_test(
    "name, state, exit_code, words",
    [
        ("fin-rc0-qstat-x-f-json", "done", 0, None),
        ("fin-rc0-qstat-x-f", "done", 0, None),
        ("fin-kd-qstat-x-f-json", "done", 0, None),
        ("fin-rc3-qstat-x-f-json", "failed", 3, "exit status 3"),
        ("fin-rc3-qstat-x-f", "failed", 3, "exit status 3"),
        ("fin-notfound-qstat-x-f-json", "failed", 127, "exit status 127"),
        ("fin-interp-qstat-x-f-json", "failed", 127, "exit status 127"),
        ("fin-segv-qstat-x-f-json", "failed", 139, "exit status 139"),
        ("fin-segv-qstat-x-f", "failed", 139, "exit status 139"),
        ("fin-kill9-qstat-x-f-json", "failed", 137, "exit status 137"),
        ("fin-shellkilled-qstat-x-f-json", "failed", 137, "signal 9"),
        ("fin-norerun-qstat-x-f-json", "failed", 143, "signal 15"),
        ("fin-walltime-qstat-x-f-json", "failed", None, "it reached its walltime"),
        ("fin-walltime-qstat-x-f", "failed", None, "it reached its walltime"),
        ("fin-walltime_trap-qstat-x-f-json", "failed", None, "it reached its walltime"),
        ("fin-delrun-qstat-x-f-json", "cancelled", 143, None),
        ("fin-delrun-qstat-x-f", "cancelled", 143, None),
        ("fin-deltrap-qstat-x-f-json", "cancelled", 143, None),
        ("fin-ignterm-qstat-x-f-json", "cancelled", 143, None),
        ("fin-delforce-qstat-x-f-json", "cancelled", 137, None),
        ("fin-delq-qstat-x-f-json", "cancelled", None, None),
        ("fin-delq-qstat-x-f", "cancelled", None, None),
        ("fin-depfail-qstat-x-f-json", "failed", None, "without having run"),
        ("fin-depfail-qstat-x-f", "failed", None, "without having run"),
        ("array-fin-qstat-x-f-json", "failed", 1, "exit status 1"),
        ("state-Q-qstat-x-f-json", "queued", None, "in use; it will start when that is free"),
        ("state-Q-qstat-x-f", "queued", None, "in use; it will start when that is free"),
        ("state-Q-never-qstat-x-f-json", "queued", None, "no node fits what it requests"),
        ("state-Q-never-qstat-x-f", "queued", None, "no node fits what it requests"),
        ("stoppedq-qstat-f-json", "queued", None, "the queue takes no jobs to run now"),
        ("state-H-qstat-x-f-json", "queued", None, "held by its owner"),
        ("state-H-qstat-x-f", "queued", None, "held by its owner"),
        ("depend-wait-qstat-f-json", "queued", None, "waits for another job to end (afterok:75"),
        ("state-W-qstat-f-json", "queued", None, "earliest start time"),
        ("state-R-qstat-x-f-json", "running", None, None),
        ("state-R-qstat-x-f", "running", None, None),
        ("state-E-qstat-f-json", "running", None, None),
        ("qdel-running-qstat-immediately", "running", None, "it is ending"),
        ("state-S-qstat-f-json", "running", None, "suspended"),
        ("array-qstat-f-json", "running", None, None),
    ],
)
def test_states_codes_and_sentences(
    name: str, state: JobState, exit_code: int | None, words: str | None
) -> None:
    told = status(name)
    assert (told.state, told.exit_code) == (state, exit_code)
    assert words in (told.reason or "") if words else told.reason is None


@in_one_test("name", ["evil-latin1-json", "evil-ctl-json", "evil-V-json", "evil-newline-qstat-f"])
def test_what_users_put_into_their_environment_does_no_harm(name: str) -> None:
    assert status(name).state == "queued"


def test_times_are_utc_as_asked_for() -> None:
    told = status("fin-walltime-qstat-x-f-json")
    assert told.started is not None
    assert told.ended is not None
    started, ended = dt.datetime.fromisoformat(told.started), dt.datetime.fromisoformat(told.ended)
    assert started == dt.datetime(2026, 11, 20, 22, 37, 24, tzinfo=dt.timezone.utc)
    assert (ended - started).total_seconds() == 33
    assert PBS.query_env == {"TZ": "UTC0"}


def test_json_and_text_tell_the_same() -> None:
    pairs = [(p.name, f"{p.name}-json") for p in DATA.iterdir() if (DATA / f"{p.name}-json").exists()]
    assert len(pairs) >= 8
    for text, json in pairs:
        assert status(text) == status(json)


def test_a_job_after_an_unknown_one_is_asked_for_again() -> None:
    words, answer = recorded("qstat-x-mixed")
    ids = words[-3:]
    known = PBS.parse_status("json", ids, answer)
    assert {job: told.state for job, told in known.items()} == {"48.pbshost": "failed"}
    assert PBS.status_commands("each", ids[1:]) == tuple(("qstat", "-x", "-f", job) for job in ids[1:])
    words, answer = recorded("qstat-unknown-x")
    assert PBS.parse_status("json", [words[-1]], answer) == {}
    assert PBS.status_commands("each", [words[-1]]) == ()


def test_a_server_that_is_down_is_not_taken_for_a_lost_job() -> None:
    _, answer = recorded("down-qstat-id-f-json")
    for source in PBS.status_sources:
        with pytest.raises(RefusedError, match="cannot connect to server pbshost"):
            PBS.parse_status(source, ["137.pbshost"], answer)


def test_json_that_is_broken_is_left_to_the_text() -> None:
    _, answer = recorded("fin-rc0-qstat-x-f-json")
    for text in (
        "",
        "{",
        answer.stdout[:400],
        answer.stdout.replace('"rc0"', '"r"c0"'),
        "[1]",
        '{"Jobs": 3}',
    ):
        broken = CommandResult(exit_code=0, stdout=text, stderr="")
        assert PBS.parse_status("json", ["40.pbshost"], broken) == {}
    noise = CommandResult(exit_code=0, stdout="module: loaded\n" + answer.stdout, stderr="")
    assert PBS.parse_status("json", ["40.pbshost"], noise)["40.pbshost"].state == "done"


def test_rubbish_is_no_answer() -> None:
    for text in ("maintenance until noon", "", "Job Id:\n"):
        with pytest.raises(RefusedError, match="qstat gives an answer that cannot be read"):
            PBS.parse_status("text", ["40.pbshost"], CommandResult(exit_code=0, stdout=text, stderr=""))


@pytest.mark.parametrize("name", ["fin-rc0-qstat-x-f", "fin-rc0-qstat-x-f-json"])
def test_server_script_and_time_tell_a_job_from_another(name: str) -> None:
    words, answer = recorded(name)
    said = PBS.parse_status("json" if "json" in name else "text", [words[-1]], answer)[words[-1]].identity
    assert (said.cluster, bool(said.script), bool(said.submitted)) == ("pbshost", True, True)
    assert PBS.cluster_in(words[-1]) == "pbshost"


@pytest.mark.parametrize("name", ["qsub-ok", "qsub-stdin"])
def test_submitting(name: str) -> None:
    _, answer = recorded(name)
    assert PBS.parse_submit(answer) == answer.stdout.strip()


@in_one_test(
    "name, words",
    [
        ("qsub-queue-missing", "Unknown queue"),
        ("qsub-walltime-limit", "Job violates queue and/or server resource limits"),
        ("qsub-queue-acl", "Unauthorized Request"),
        ("qsub-script-missing", "No such file or directory"),
        ("down-qsub", "Connection refused; cannot connect to server pbshost"),
    ],
)
def test_a_refusal_keeps_the_words_of_pbs(name: str, words: str) -> None:
    _, answer = recorded(name)
    with pytest.raises(RefusedError, match="PBS refused the job") as caught:
        PBS.parse_submit(answer)
    assert words in caught.value.message
    assert caught.value.exit_code == 4


@in_one_test("name", ["qdel-running", "qdel-running-again", "qdel-unknown", "qdel-finished"])
def test_cancelling_what_ends_or_has_ended_is_fine(name: str) -> None:
    PBS.parse_cancel(recorded(name)[1])


@pytest.mark.parametrize("name", ["down-qdel", "qdel-badid"])
def test_cancelling_may_be_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="PBS did not cancel"):
        PBS.parse_cancel(recorded(name)[1])


def test_one_question_for_all_jobs() -> None:
    ids = [f"{i}.server" for i in range(1000)]
    assert PBS.status_commands("json", ids) == (("qstat", "-x", "-f", "-F", "json", *ids),)
    assert PBS.status_commands("text", ids) == (("qstat", "-x", "-f", *ids),)
