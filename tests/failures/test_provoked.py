"""Real outputs of jobs of several ranks, each with what happened, and what only looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hpclaunch.failures.failed_ranks import ranks_named
from hpclaunch.failures.known_errors import OWN_ERROR, log_words
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict
from hpclaunch.job.failure_causes import failure_of
from hpclaunch.job.record import Failure
from hpclaunch.job.store import Store
from tests.in_one_test import in_one_test
from tests.testbed.kit import new_record

FILES = sorted((Path(__file__).parents[1] / "data" / "provoked").glob("*.yaml"))


def log_of(lines: Sequence[str]) -> FailureLog:
    """The parts of a log that `read_failures` makes of a short one."""
    return FailureLog("\n".join(filter(log_words("rank_lines").search, lines)), tuple(lines))


def found_in(case: dict[str, Any], folder: Path) -> Failure:
    record = new_record(Store(folder), "local", folder)
    record = replace(record, tasks=case["ranks"], nodes=case["nodes"], exit_code=1)
    return failure_of(record, log_of(case["log"].splitlines()))


@in_one_test("path", FILES)
def test_a_provoked_failure_is_read(path: Path, tmp_path: Path) -> None:
    case = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found = found_in(case, tmp_path / path.stem)
    wanted = frozenset(case["rank"])
    named = ranks_named(found.candidates if len(wanted) > 1 and not found.rank else found.rank)
    assert (bool(named), named | wanted) == (bool(wanted), wanted), (found.rank, found.candidates)
    assert found.cause in case["cause"]
    assert not case["line"] or any(case["line"] in line for line in found.lines)
    assert (case["where"] or "") in (found.where or "")


def trace(error: str) -> list[str]:
    return ["Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "    run()", error]


def failed(rank: int, pid: int, code: int = 1) -> str:
    agent = "E1129 03:28:05.782000 19022 torch/distributed/elastic/multiprocessing/api.py:1002]"
    return f"{agent} failed (exitcode: {code}) local_rank: {rank} (pid: {pid}) of binary: /h/bin/python3"


def sent(pid: int) -> str:
    agent = "W1129 03:28:05.778000 19022 torch/distributed/elastic/multiprocessing/api.py:1028]"
    return f"{agent} Sending process {pid} closing signal SIGTERM"


def table(*entries: tuple[int, int, int]) -> list[str]:
    """torchrun's, of rank, process and exit code, the root cause last."""
    text = (
        "  time      : 2026-11-29_03:28:06\n  host      : n1\n  rank      : {0} (local_rank: {0})\n"
        "  exitcode  : {2} (pid: {1})"
    )
    *others, root = (text.format(*entry) for entry in entries)
    return "\n".join((*others, "Root Cause (first observed failure):", "[0]:", root)).splitlines()


def read(lines: Sequence[str], ranks: int = 3, nodes: int = 1) -> Verdict:
    return verdict(log_of(lines), failed=True, ranks=ranks, nodes=nodes)


def cause(found: Verdict) -> str | None:
    return found.error.cause if found.error else None


def test_an_earlier_attempt_counts_where_the_last_one_tells_nothing() -> None:
    earlier = [*trace("KeyError: 'a'"), failed(1, 61), "step 1"]
    last = read([*earlier, failed(2, 72, -9), *table((2, 72, -9))])
    assert (last.rank, cause(last)) == ("2", "killed")
    silent = read([*earlier, failed(0, 70, -15), *table((0, 70, -15))])
    assert (cause(silent), silent.lines) == (OWN_ERROR, ("KeyError: 'a'",))


@pytest.mark.parametrize("after", [[], table((1, 61, 1)), table((2, 72, 1), (1, 61, 1))])
def test_an_agent_of_another_node_ends_no_attempt(after: list[str]) -> None:
    """Each agent has its table; one that was ended itself has none."""
    agents = [failed(1, 61), failed(0, 72)]
    found = read([*trace("KeyError: 'a'"), *agents, *after], nodes=2)
    assert (cause(found), found.where) == (OWN_ERROR, "/h/a.py:3")


def test_a_report_of_an_attempt_after_the_last_ones_is_of_another_agent() -> None:
    found = read([failed(2, 72), *trace("KeyError: 'a'"), failed(1, 61), *table((2, 72, 1))], nodes=2)
    assert found.where == "/h/a.py:3"


def test_workers_that_ran_on_when_one_had_failed_were_not_the_first() -> None:
    ends = table((0, 60, 1), (2, 62, 1), (1, 61, 1))
    assert read([sent(60), sent(62), failed(1, 61), *ends]).rank == "1"
    assert read([sent(60), failed(1, 61), *ends]).candidates == "1-2"
    assert read([failed(1, 61), *ends]).candidates == "0-2"
    assert read([sent(60), sent(61), sent(62), failed(1, 61), *ends]).rank == "1"


SRUN = "srun: error: n1: task 1: Exited with exit code {}"


@in_one_test(
    "code, wanted",
    [(1, OWN_ERROR), (42, OWN_ERROR), (125, OWN_ERROR), (126, "not executable"), (127, "command not found"),
     (143, None)],
)  # fmt: skip
def test_an_exit_code_that_a_rank_chose_is_its_own_error(code: int, wanted: str | None) -> None:
    found = read([*["step 1"] * 3, SRUN.format(code)])
    assert (cause(found), found.rank) == (wanted, "1" if wanted else found.rank)
    assert cause(verdict(log_of([*["step 1"] * 3, SRUN.format(code), "epoch 2"]))) is None


@in_one_test(
    "last, rank, wanted",
    [
        (["2: cell 12 is inside out"], "2", OWN_ERROR),
        (["0: cell 12 is inside out"], None, OWN_ERROR),
        (["cell 12 is inside out"], None, OWN_ERROR),
        (["2: wrote times.csv"], None, None),
        (["1: cell 12 is inside out", "2: cell 13 is inside out"], None, None),
        (["2: cell 12 is inside out", "0: sweep 2", "1: sweep 2", "2: sweep 2"], None, None),
    ],
)
def test_words_that_one_process_alone_wrote_at_the_end_are_why_it_left(
    last: list[str], rank: str | None, wanted: str | None
) -> None:
    found = read([f"{rank}: sweep {step}" for step in range(2) for rank in (0, 1, 2)] + last)
    assert (found.rank, cause(found)) == (rank, wanted)


FORMS = ("{0:02d}:00:01 [{1}] ", "solver [{1}] ", "solver[{1}]: ", "I [fit] <{1}> ", "n7a: [{1}] ", "({1}) ")
TURNS = (0, 2, 1, 1, 2, 0, 0, 1, 2)


@in_one_test("form", FORMS)
def test_numbers_that_take_turns_are_ranks(form: str) -> None:
    lines = [f"{form.format(at, rank)}sweep done" for at, rank in enumerate(TURNS)]
    found = read([*lines, f"{form.format(9, 1)}cannot go on"])
    assert (found.rank, cause(found)) == ("1", OWN_ERROR)


@in_one_test(
    "numbers, ranks",
    [
        ((0, 1, 2) * 3, 3),  # a loop of one process
        ((0, 0, 0, 1, 1, 1, 2, 2, 2), 3),  # one after another
        (TURNS, 4),  # not all
        ((*TURNS, 5, 5), 3),
        ((0, 2, 1, 1, 0, 0, 1), 3),  # one of them once
    ],
)
@in_one_test("form", FORMS[1:4])
def test_numbers_that_count_something_else_are_not(numbers: tuple[int, ...], ranks: int, form: str) -> None:
    lines = [f"{form.format(at, number)}sweep done" for at, number in enumerate(numbers)]
    assert read([*lines, f"{form.format(9, 1)}cannot go on"], ranks=ranks).rank is None


@in_one_test("thing", ("expert", "layer", "GPU", "chunk"))
def test_numbers_of_things_are_not_those_of_ranks(thing: str) -> None:
    lines = [f"{thing} [{number}] has 0.3" for number in TURNS]
    assert read([*lines, f"{thing} [1] cannot go on"]).rank is None


def test_numbers_of_few_lines_are_not_those_of_ranks() -> None:
    lines = [f"solver [{rank}] sweep" for rank in TURNS]
    assert read([*lines, *["residual 0.3"] * 20, "solver [1] cannot go on"]).rank is None


def test_the_number_of_a_process_before_a_signal_is_not_a_rank() -> None:
    assert read(["solver[4242]: caught signal 11"]).rank is None


STEP = "srun: launch/slurm: _step_signal: Terminating StepId=7.0"
KILLED = "srun: error: n1: task {}: Killed"


def test_ranks_killed_when_srun_ended_all_were_not_the_first() -> None:
    found = read([KILLED.format(1), STEP, KILLED.format(0)])
    assert (found.rank, found.candidates, cause(found)) == ("1", None, "killed")
    assert read([KILLED.format(1), KILLED.format(0), STEP]).candidates == "0-1"
    assert read([STEP, KILLED.format(1), KILLED.format(0)]).candidates == "0-1"
    left = [KILLED.format(1), STEP, "srun: error: n1: task 0: Segmentation fault"]
    assert read(left).rank == "0"


def test_an_exit_code_of_which_deepspeed_tells_is_of_the_rank_that_wrote_no_exception() -> None:
    end = "[2026-11-29 03:51:13,158] [ERROR] [launch.py:259:sigkill_handler] ['python3', 'a.py'] exits with"
    lost = [f"[rank{rank}]: RuntimeError: Connection closed by peer [::1]:9" for rank in (0, 2)]
    for code, wanted in ((6, OWN_ERROR), (1, "ranks differ"), (16, OWN_ERROR)):
        found = read([*lost, f"{end} return code = {code}"])
        assert (found.rank, cause(found)) == ("1", wanted)


@in_one_test(
    "said, wanted",
    [
        ("WARNING cannot read a shard (No such file or directory: 1/002.pt), end of my data", OWN_ERROR),
        ("WARNING could not reach the store, end of my data", OWN_ERROR),
        ("INFO all shards done", "ranks differ"),
        ("INFO errors: 0", "ranks differ"),
    ],
)
def test_a_rank_that_left_early_after_a_warning_left_for_that(said: str, wanted: str) -> None:
    lost = [f"[rank{rank}]: RuntimeError: Connection closed by peer [::1]:9" for rank in (0, 2)]
    found = read(["[rank1]: step 3", f"[rank1]: {said}", *lost])
    assert (found.rank, cause(found)) == ("1", wanted)


FROM = ["", "The above exception was the direct cause of the following exception:", ""]


@pytest.mark.parametrize(
    ("error", "where"), [("KeyError: 'b'", "/h/worker.py:8"), ("LookupError", "/h/a.py:3")]
)
def test_an_exception_that_a_child_passed_on_has_the_childs_place(error: str, where: str) -> None:
    remote = [trace("")[0], '  File "/h/worker.py", line 8, in task', "    t['b']", "KeyError: 'b'", '"""']
    assert read([*remote, *FROM, *trace(error)]).where == where


def reported(*ends: str) -> list[str]:
    return [f"srun: error: n1: task {rank}: {words}" for rank, words in enumerate(ends)]


@in_one_test(
    "label, error, ends, rank, wanted",
    [
        ("", "KeyError: 'a'", ("Killed",), "0", "killed"),
        ("[rank0]: ", "KeyError: 'a'", ("Killed",), "0", OWN_ERROR),
        ("", "KeyError: 'a'", ("Killed", "Exited with exit code 1"), "0", "killed"),
        (
            "",
            "RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.",
            ("Killed",),
            "0",
            "out of host memory",
        ),
        ("", "KeyError: 'a'", ("Segmentation fault",), "0", OWN_ERROR),
        ("", "KeyError: 'a'", ("Segmentation fault", "Exited with exit code 1"), "0", "segmentation fault"),
        ("", "KeyError: 'a'", ("Aborted", "Exited with exit code 1"), "0", OWN_ERROR),
        ("", "KeyError: 'a'", ("Exited with exit code 9",), "0", OWN_ERROR),
    ],
)
def test_an_exception_is_not_of_a_rank_that_ended_otherwise(
    label: str, error: str, ends: tuple[str, ...], rank: str, wanted: str
) -> None:
    found = read([*[f"{label}step 1"] * 9, *(label + line for line in trace(error)), *reported(*ends)])
    assert (found.rank, cause(found)) == (rank, wanted)


@in_one_test(
    "after, wanted",
    [
        (["step 2 of 6"] * 3, "out of GPU memory"),
        (["step 2 of 6"] * 2, OWN_ERROR),  # the third one is gone
        (["waiting"] * 3, OWN_ERROR),
        (["step 2 of 6", "step 3 of 6", "step 4 of 6"], OWN_ERROR),
        (["0: step 2", "1: step 2", "2: step 2"], OWN_ERROR),
        ([f"step {step} of 6" for _ in range(3) for step in (2, 3, 4)], OWN_ERROR),  # buffered until the end
    ],
)
def test_an_exception_after_which_all_ranks_went_on_was_caught(after: list[str], wanted: str) -> None:
    memory = trace(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity"
    )
    ends = ["srun: error: n1: task 1: Exited with exit code 1"]
    before = ["step 1 of 6"] * 3
    found = read([*before, *trace("KeyError: 'a'"), *after, *memory, *ends])
    assert (found.rank, cause(found)) == ("1", wanted)
    alone = read(
        [*before, *trace("FileNotFoundError: [Errno 2] No such file or directory: 'a'"), *after, *ends]
    )
    assert cause(alone) == (OWN_ERROR if wanted != OWN_ERROR else "file missing")
    assert cause(read([*trace("KeyError: 'a'"), *after, *memory, *ends])) == OWN_ERROR


@in_one_test(
    "words, rank",
    [
        (("worker 0: sweep", "worker 1: sweep"), "1"),
        (("Actor 0 sweep", "Actor 1 sweep"), "1"),
        (("loader: worker 0", "loader: worker 1"), None),
        (("worker 0: sweep", "worker 0: sweep"), None),
        (("worker 0: sweep", "sweep"), None),
    ],
)
def test_an_actors_own_number_at_the_beginning_of_its_words_is_its_rank(
    words: tuple[str, str], rank: str | None
) -> None:
    said = [f"(Solver pid={70 + number}) {text}" for number, text in enumerate(words)] * 3
    error = "ray.exceptions.RayTaskError(KeyError): ray::Solver.run() (pid=71, ip=192.0.2.2, repr=<Solver>)"
    assert read([*said, error, *trace("KeyError: 'a'")[1:]], ranks=2).rank == rank
