"""Which rank is at fault: each kind of evidence with each kind of label and report, a rank at a time."""

from __future__ import annotations

from collections.abc import Callable

from hpclaunch.failures.known_errors import log_words
from hpclaunch.failures.read_failure import FailureLog, verdict
from tests.in_one_test import in_one_test

RANKS = 4
LABELS = ("{}: ", "[{}] ", "[1,{}]<stderr>:", "[default{}]:", "rank {} | ", "[R{}] ", "[rank {}/4] ", "{} | ")
ERROR = ("Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "    run()", "{}")


def trace(words: str) -> list[str]:
    return [line.format(words) for line in ERROR]


def rank_of(lines: list[str], ranks: int = RANKS, nodes: int = 1) -> str | None:
    launcher = "\n".join(filter(log_words("rank_lines").search, lines))
    return verdict(FailureLog(launcher, tuple(lines)), failed=True, ranks=ranks, nodes=nodes).rank


def labelled(label: str, words: dict[int, list[str]]) -> list[str]:
    steps = [f"{label.format(rank)}step {step}" for step in range(3) for rank in range(RANKS)]
    return [*steps, *(label.format(rank) + line for rank, said in words.items() for line in said)]


def watchdog(rank: int) -> list[str]:
    late = "WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600027 milliseconds"
    return [
        f"[E ProcessGroupNCCL.cpp:828] [Rank {rank}] Watchdog caught collective operation timeout: {late}",
        "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out.",
    ]


WAIT: dict[str, Callable[[int], list[str]]] = {
    "watchdog": watchdog,
    "gloo": lambda rank: trace("RuntimeError: Timed out waiting 1800000ms for recv operation to complete"),
    "lost": lambda rank: trace(f"RuntimeError: Connection closed by peer [10.0.0.1]:4{rank}1"),
    "barrier": lambda rank: trace(
        f"RuntimeError: Timed out initializing process group in store based barrier on rank: {rank}"
    ),
}


@in_one_test("wait", WAIT)
@in_one_test("label", LABELS)
def test_the_rank_that_says_nothing_is_the_one_for_which_all_others_wait(label: str, wait: str) -> None:
    for silent in range(RANKS):
        words = {rank: WAIT[wait](rank) for rank in range(RANKS) if rank != silent}
        assert rank_of(labelled(label, words)) == str(silent)


@in_one_test("label", LABELS)
def test_an_own_error_counts_before_what_others_write(label: str) -> None:
    for own in range(RANKS):
        words = {rank: watchdog(rank) for rank in range(RANKS)} | {own: trace("KeyError: 'age'")}
        assert rank_of(labelled(label, words)) == str(own)


def test_a_watchdog_names_its_rank_without_a_label() -> None:
    lines = [line for rank in (0, 1, 3) for line in watchdog(rank)]
    assert (
        rank_of(
            [*lines, "[launch.py:325:sigkill_handler] ['a.py', '--local_rank=3'] exits with return code = -9"]
        )
        == "2"
    )


def test_a_rank_that_the_launcher_ended_while_it_left_is_the_one_that_all_others_lost() -> None:
    words = {rank: WAIT["lost"](rank) for rank in (0, 1, 3)}
    ends = ["srun: error: n1: tasks 0-1,3: Exited with exit code 1", "srun: error: n1: task 2: Terminated"]
    assert rank_of([*labelled("[rank{}]: ", words), *ends]) == "2"


AGENT = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: {} (pid: 42)"


@in_one_test("code", [1, 3, -9, -11])
def test_the_number_that_the_agent_of_the_only_node_tells_is_the_rank(code: int) -> None:
    assert rank_of(["step 1", AGENT.format(code, 2)]) == "2"
    assert rank_of([*trace("KeyError: 'age'"), AGENT.format(code, 2)]) == "2"
    assert rank_of([*trace("KeyError: 'age'"), AGENT.format(code, 1)], nodes=2) is None


@in_one_test(
    "words",
    [
        "ERROR (rank 3): the density is below zero", "MPI task 3 : FATAL ERROR: no such zone",
        "*** rank 3 *** the solver failed", 'level=error rank=3 msg="no mesh"',
        "[2026-03-04 10:11:12,123][R3][ERROR] no mesh", "ERROR | rank3 | no mesh", "proc#3: ERROR no mesh",
        "TimeoutError: the barrier timed out, missing ranks [3]", "RuntimeError: rank 3 never joined",
        "RuntimeError: lost connection to rank 3", "Fatal error in process 3: no mesh",
        "ValueError: no shard for rank 3 of 4", "NaN detected at rank 3, aborting",
    ],
)  # fmt: skip
def test_the_only_rank_that_an_error_names_is_at_fault(words: str) -> None:
    assert rank_of(["step 1", "step 2", words]) == "3"
    assert rank_of(trace(f"RuntimeError: {words}")) == "3"


@in_one_test(
    "form",
    ["rank {} pid {}", "rank={}, pid={}", "starting rank {} of 4 (pid {})"],
)
@in_one_test(
    "end",
    ["[7.1] Out of memory: Killed process 4203 (python)", "run.sh: line 14: 4203 Killed  python train.py"],
)
def test_a_process_whose_rank_the_program_tells(form: str, end: str) -> None:
    assert rank_of([*(form.format(rank, 4200 + rank) for rank in range(RANKS)), "step 1", end]) == "3"


@in_one_test(
    "words",
    [
        "ValueError: Shape must be rank 2 but is rank 3", "ValueError: LoRA rank 3 is above max_lora_rank 2",
        "ValueError: Expected rank 2, got rank 3", "ValueError: tensor rank 3 is not supported",
        "RuntimeError: only rank 0 may call this",
    ],
)  # fmt: skip
def test_the_rank_of_a_tensor_is_no_process(words: str) -> None:
    assert rank_of(trace(words)) is None


def test_a_coefficient_of_determination_is_no_rank() -> None:
    assert rank_of(["step 1", "R2 = NaN"]) is None
