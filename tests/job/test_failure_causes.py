"""What a log says of nodes and ranks: which failed first, and which node is to be left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.cli.status import _failed, _who
from hpclaunch.failures.read_failure import FailureLog
from hpclaunch.job.failure_causes import bad_nodes, error_words, failure_of, first_death, refused_mask
from hpclaunch.job.job_end import EndLogs, alone, explained
from hpclaunch.job.log_extract import PREFLIGHT_PREFIX, Trace
from hpclaunch.job.record import PREFIX, Failure, NodeVerdict, verdict
from hpclaunch.job.store import Store
from tests.in_one_test import in_one_test
from tests.testbed.kit import new_record

# As Slurm 22.05.8 wrote them.
NODE_FAILED = """srun: Job step aborted: Waiting up to 4 seconds for job step to finish.
srun: error: Node failure on n2
slurmstepd-n1: error: *** STEP 11.0 ON n1 CANCELLED AT 2026-11-21T07:59:40 DUE TO NODE FAILURE ***
srun: error: n1: task 0: Terminated
"""
NOT_THE_NODES = """srun: error: n3: task 1: Killed
srun: error: Task launch for StepId=15.0 failed on node n1: Unable to satisfy cpu bind request
srun: error: n1: task 0: Terminated
"""


def test_the_node_that_slurm_names_is_blamed(tmp_path: Path) -> None:
    record = new_record(Store(tmp_path), "slurm", tmp_path)
    assert bad_nodes(record, NODE_FAILED) == {"n2": "srun: error: Node failure on n2"}


def test_a_program_or_a_request_that_fails_does_not_make_the_node_bad(tmp_path: Path) -> None:
    assert bad_nodes(new_record(Store(tmp_path), "slurm", tmp_path), NOT_THE_NODES) == {}


def test_a_node_that_bound_its_ranks_otherwise_is_blamed(tmp_path: Path) -> None:
    line = PREFIX + "rank={} host={} local_rank=0 cpus=0 planned=0 verdict={}\n"
    log = line.format(0, "n1", "ok") + line.format(1, "n2", "cpus-differ")
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), binding=verdict(log, 2))
    assert bad_nodes(record, log) == {"n2": "rank 1 did not get its binding (cpus-differ)"}


@in_one_test(
    "log, words",
    [
        (NOT_THE_NODES, "first failure reported: rank 1 on n3: Killed"),
        (
            "srun: error: n2: tasks 0-3,7: Exited with exit code 1\n",
            "rank 0-3,7 on n2: Exited with exit code 1",
        ),
        ("Traceback\n  srun: error: n2: task 1: quoted\n", None),
    ],
)
def test_the_rank_that_is_reported_first_is_named(log: str, words: str | None) -> None:
    found = first_death(log)
    assert (found is None) == (words is None)
    assert (words or "") in (found or "")


@pytest.mark.parametrize(
    ("log", "tasks", "found"),
    [
        ("rank 0 of 1\n" * 4, 4, True),
        ("0: Hello from rank 0/1 on n1\n1: Hello from rank 0/1 on n1\n", 2, True),
        ("[n1] MPI rank=0, world_size=1\n" * 2, 2, True),
        ("rank 0 of 1\n", 4, False),  # a rank that says it for itself
        ("rank 0 of 1\n" * 4, 1, False),
        ("rank 0 of 10\n" * 4, 4, False),
        ("rank 0 of 1.5\n" * 4, 4, False),
        ("local rank 0 of 1\n" * 4, 4, False),  # one rank a node
        ("data parallel rank 0 of 1\n" * 4, 4, False),
        ("prank 0 of 1\n" * 4, 4, False),
        ("rank 0 of 1\n" * 4 + "rank 3 of 4\n", 4, False),
    ],
)
def test_ranks_that_each_ran_alone(tmp_path: Path, log: str, tasks: int, found: bool) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=tasks)
    assert (alone(record, log) is not None) == found


def test_without_mpi_they_run_alone_on_purpose(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=2)
    assert alone(record, "rank 0 of 1\n" * 2)
    assert alone(replace(record, request={"mpi": "none"}), "rank 0 of 1\n" * 2) is None


def test_why_they_ran_alone(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=2)
    log = "rank 0 of 1\n" * 2
    by = {("srun", "--mpi=pmi2"): "plugin pmi2", ("srun",): "default plugin", ("mpiexec",): "another MPI"}
    for launch, words in by.items():
        assert words in (alone(replace(record, plan={"launch": launch}), log) or "")


def test_a_refused_mask_of_a_shared_node_may_name_others_cores(tmp_path: Path) -> None:
    record = new_record(Store(tmp_path), "slurm", tmp_path)
    words = "srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x0000{}.\n"
    ranks = [{"cpus": [1, 2]}, {"cpus": [3, 4]}, {"cpus": [5, 6]}]
    record = replace(record, plan={"binding": {"ranks": ranks}}, request={"exclusive": False})
    said = refused_mask(record, words.format("1E")) or ""
    assert "local rank 2 (CPUs 5-6) holds CPUs that are not the job's: 5-6; the job's are 1-4" in said
    assert "--exclusive" in said
    said = refused_mask(replace(record, request={"exclusive": True}), words.format("6")) or ""
    assert "and 1 more masks do" in said
    assert "node.reserved_cores: 3-6)" in said
    assert refused_mask(replace(record, plan={}), words.format("6")) == (
        "Slurm refused the CPU binding; the job's are 1-2. "
        "Masks hold on whole nodes only: ask for them (--exclusive), or add --binding off"
    )
    assert refused_mask(record, NOT_THE_NODES) is None


@in_one_test(
    "command, lines, compiled",
    [
        (("./crash",), ("srun: error: n1: task 1: Segmentation fault",), True),
        (("nice", "bin/lmp", "-in", "x"), ("srun: error: n1: task 1: Floating point exception",), True),
        (("./crash",), ("free(): invalid pointer",), True),
        (("python3", "train.py"), ("srun: error: n1: task 1: Segmentation fault",), False),
        (("./train.py",), ("srun: error: n1: task 1: Segmentation fault",), False),
        (("bash", "run.sh"), ("srun: error: n1: task 1: Segmentation fault",), False),
        (("./train",), ("Fatal Python error: Segmentation fault",), False),
    ],
)
def test_the_remedy_of_a_signal_fits_the_program(
    command: tuple[str, ...], lines: tuple[str, ...], compiled: bool, tmp_path: Path
) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), command=command, exit_code=139)
    remedy = failure_of(record, FailureLog(lines=lines)).remedy or ""
    assert ("PYTHONFAULTHANDLER" in remedy) != compiled
    program = next((word for word in command if "/" in word), "")
    assert (f'ulimit -c unlimited; exec "$@"\' rank before {program} ' in remedy) == compiled
    assert (f"gdb {program} core" in remedy) == compiled


LABEL = ("Traceback (most recent call last):", '  File "/a.py", line 8, in <module>', "KeyError: 'label 11'")


@in_one_test(
    "reported, who",
    [
        ("srun: error: n1: task 0: Exited with exit code 1\n", "rank 1: "),
        ("srun: error: n2: task 1: Exited with exit code 1\n", ""),
        ("", ""),
    ],
)
def test_the_error_of_another_rank_than_the_reported_one_has_its_rank(reported: str, who: str) -> None:
    log = FailureLog(lines=(*LABEL, reported.strip()), ranks=reported, stderr={"1": LABEL})
    assert error_words(log) == f"{who}the program's own error: KeyError: 'label 11'"


def test_ranks_that_a_preflight_kept_from_starting_have_no_binding(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), state="failed", exit_code=1, tasks=2)
    record = replace(record, plan={"binding": {"ranks": []}})
    said = '{{"host": "n1", "check": "imports", "status": "{}", "evidence": "no mpi4py"}}\n'
    found = {}
    for status in ("missing", "have"):
        log = Trace(log=f"{PREFLIGHT_PREFIX}{said.format(status)}")
        found[status] = explained(record, EndLogs({record.folder: log}, {}), {}, "now").binding
    assert found["missing"] is None
    assert found["have"] is not None
    assert "0 of 2 ranks reported" in found["have"].finding


def test_another_remedy_is_the_same_for_all_programs(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), command=("./crash",), exit_code=135)
    log = FailureLog(lines=("srun: error: n1: task 1: Bus error",))
    assert "/dev/shm is full" in (failure_of(record, log).remedy or "")


def test_the_line_of_the_report_is_not_the_programs_last_word(tmp_path: Path) -> None:
    record = new_record(Store(tmp_path / "state"), "slurm", tmp_path)
    summary = (
        "hpclaunch: 1 node, 1 rank: at most 1.0 of 8.0 GiB in use (n1); more: hpclaunch report 20261122-1-ab"
    )
    failure = failure_of(record, FailureLog(lines=("loading", "no such key: lr", summary)))
    assert failure.lines == ("loading", "no such key: lr")


SLURM_STOPS = {
    "22.05": "slurmstepd-n1: error: *** STEP 11.0 ON n1 CANCELLED AT 2026-11-21T07:59:40 DUE TO {} ***",
    "25.05": "[2026-11-23T01:24:44.537] error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-23 DUE TO {} ***",
}


@pytest.mark.parametrize("version", SLURM_STOPS)
@pytest.mark.parametrize("why", ["TIME LIMIT", "TASK FAILURE"])
def test_slurms_own_line_is_not_the_programs(tmp_path: Path, version: str, why: str) -> None:
    line = SLURM_STOPS[version].format(why)
    own = ("step 7", "[2026-11-23T01:24:44.537] error: *** the loss is nan ***")
    record = new_record(Store(tmp_path), "slurm", tmp_path)
    last = "srun: error: n1: task 0: Terminated"
    failure = failure_of(record, FailureLog(f"{last}\n", (*own, line, last)))
    assert failure.lines == ((*own, line) if why == "TIME LIMIT" else own)
    assert failure.cause == ("time limit" if why == "TIME LIMIT" else None)


TRACE = ("Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "KeyError: 'a'")


def test_ranks_that_are_equally_likely_are_shown_and_none_is_named(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=4, exit_code=139)
    said = "srun: error: n2: tasks 1,3: Segmentation fault"
    failure = failure_of(record, FailureLog(f"{said}\n", (said,)))
    assert (failure.rank, failure.candidates, failure.node, failure.exit_code) == (None, "1,3", "n2", 139)
    rows = dict(_who(failure, 4))
    likely = "not known, any of 1,3 may have failed first"
    assert rows["rank"] == f"{likely} on n2, exit code 139 (SIGSEGV)"
    with_stderr = replace(failure, node=None, exit_code=None, stderr_rank="1", stderr_lines=1)
    shown = dict(_failed(with_stderr, 4))
    assert (shown["rank"], shown["in stderr of rank 1"]) == (likely, said)


def test_the_only_rank_that_wrote_is_told_where_no_rank_is(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=4, exit_code=1)
    failure = failure_of(record, FailureLog(stderr={"2": ("step 7", "the mesh is odd")}))
    assert (failure.rank, failure.stderr_rank, failure.stderr_lines) == (None, "2", 2)
    assert dict(_who(failure, 4))["rank"] == "not known; the stderr of rank 2 has these lines"


def test_of_one_rank_a_failure_of_the_set_up_is_not_the_ranks(tmp_path: Path) -> None:
    """It reported no binding and wrote nothing; where none was planned that is not known."""
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=1, exit_code=127)
    said = "/jobs/1/job.sh: line 19: module: command not found"
    silent = replace(record, binding=verdict("", 1))
    failure = failure_of(silent, FailureLog(lines=(said,)))
    assert (failure.rank, failure.cause) == (None, "module system")
    assert "rank" not in dict(_who(failure, 1))
    assert failure_of(record, FailureLog(lines=(said,))).rank == "0"
    assert failure_of(silent, FailureLog(lines=(said,), stderr={"0": (said,)})).rank == "0"
    report = PREFIX + "rank=0 host=n1 local_rank=0 cpus=0 planned=0 verdict=ok\n"
    assert failure_of(replace(record, binding=verdict(report, 1)), FailureLog(lines=(said,))).rank == "0"
    found = NodeVerdict(host="n1", check="gpus", status="missing", evidence="3 of 4")
    assert failure_of(replace(record, preflight=(found,)), FailureLog(lines=(said,))).rank is None


ABORT = {  # Open MPI 5.0.11, whose launcher says it, and MPICH 4.0.2, whose rank does
    "open": ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", False),
    "mpich": ("application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1", True),
}


@pytest.mark.parametrize("mpi", ABORT)
def test_before_mpi_abort_its_rank_has_said_why(tmp_path: Path, mpi: str) -> None:
    """The words of other ranks are not shown, nor those of the rank after another error."""
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=2, exit_code=3)
    line, by_rank = ABORT[mpi]
    own = ("step 7", "bad state", *([line] if by_rank else []))
    log = FailureLog(f"{line}\n  Errorcode: 3\n", (line,), {"0": ("step 6",), "1": own})
    failure = failure_of(record, log)
    assert (failure.rank, failure.cause, failure.lines) == ("1", "MPI_Abort", ("step 7", "bad state", line))
    assert (failure.stderr_rank, failure.stderr_lines) == ("1", len(own))
    log = FailureLog(lines=(), stderr={"1": ("step 7", *TRACE)})
    assert "step 7" not in failure_of(record, log).lines


def test_a_cause_that_the_line_begins_with_is_not_said_twice() -> None:
    line = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD"
    assert error_words(FailureLog(lines=(line,))) == line
    line = "application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1"
    assert error_words(FailureLog(lines=(line,))) == f"MPI_Abort: {line}"


def test_a_task_with_several_ranks_names_none_of_its_candidates(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=1, exit_code=1)
    lines = tuple(f"[rank{rank}]: {line}" for rank in range(2) for line in TRACE)
    failure = failure_of(record, FailureLog(lines=lines))
    assert (failure.rank, failure.candidates) == (None, "0-1")


RAISED = (*TRACE, "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-28T22:37:34 {}***")
ENDED = "srun: error: n1: tasks 0-1: Terminated"


def test_ranks_that_waited_for_one_that_raised_need_no_more_time(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=2, state="failed", exit_code=1)
    lines = tuple(line.format("DUE TO TIME LIMIT ") for line in RAISED)
    failure = failure_of(record, FailureLog(ENDED, lines, {"1": TRACE}))
    assert (failure.rank, failure.cause, failure.remedy) == ("1", "the program's own error", None)
    went_on = (*lines[:3], "step 8 loss 0.31", *lines[3:])
    assert failure_of(record, FailureLog(ENDED, went_on, {"1": TRACE})).cause == "time limit"


def test_an_exception_before_a_cancellation_is_shown_and_the_cancellation_is_not(tmp_path: Path) -> None:
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), tasks=2, state="cancelled")
    lines = (*(line.format("") for line in RAISED), ENDED)
    traces = {record.folder: Trace()}

    def shown(log: FailureLog) -> Failure | None:
        return explained(record, EndLogs(traces, {record.folder: log}), {}, "2026-11-28T22:37:35").failure

    failure = shown(FailureLog(ENDED, lines, {"1": TRACE}))
    assert failure is not None
    assert (failure.cause, failure.where) == ("the program's own error", "/h/a.py:3")
    assert shown(FailureLog(ENDED, lines[3:])) is None
    assert shown(FailureLog(ENDED, (*TRACE, "step 8 loss 0.31", *lines[3:]))) is None
