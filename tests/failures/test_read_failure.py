"""Which rank, error and place of a log count: what launchers, ranks and programs say, taken together."""

from __future__ import annotations

import pytest

from hpclaunch.failures.known_errors import OWN_ERROR
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict


def read(log: str, launcher: str = "", ranks: int = 4) -> Verdict:
    return verdict(
        FailureLog(launcher, (*log.splitlines(), *launcher.splitlines())), failed=True, ranks=ranks
    )


def cause(found: Verdict) -> str | None:
    return found.error.cause if found.error else None


def trace(label: str, error: str = "KeyError: 'a'\n") -> str:
    lines = ("Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "    run()")
    return "".join(f"{label}{line}\n" for line in lines) + (f"{label}{error}" if error else "")


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("rank1: ", "rank0: "),
        ("1 | ", "0 | "),
        ("2026-11-24T12:00:00.123 1: ", "2026-11-24T12:00:00.124 0: "),
        ("Tue Nov 24 20:41:31 2026[1,1]<stderr>:", "Tue Nov 24 20:41:31 2026[1,0]<stdout>:"),
        ("[default1]:", "[default0]:"),
    ],
)
def test_a_label_names_the_rank(label: str, other: str) -> None:
    found = read(f"{other}step 1\n{trace(label)}{other}step 2\n")
    assert (found.rank, found.where, cause(found)) == ("1", "/h/a.py:3", OWN_ERROR)


def test_a_labelled_process_names_its_rank_itself() -> None:
    found = read(f"[n2:0]: rank 4 of 8\n[n2:1]: rank 5 of 8\n{trace('[n2:1]:')}[n2:0]: step 1\n", ranks=8)
    assert (found.rank, found.where) == ("5", "/h/a.py:3")


def test_a_traceback_with_which_the_log_ends_counts() -> None:
    found = read(f"0: step 1\n{trace('1: ', '')}")
    assert (found.rank, found.where, cause(found)) == ("1", "/h/a.py:3", OWN_ERROR)


SRUN = "srun: error: n1: task"


def test_ranks_killed_after_the_first_failure_are_not_the_cause() -> None:
    found = read("", f"{SRUN} 2: Exited with exit code 3\n{SRUN}s 0-1,3: Killed\n")
    assert (found.rank, cause(found)) == ("2", None)


def test_a_rank_killed_before_others_lost_it_is() -> None:
    lost = "[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:1\n"
    found = read(lost, f"{SRUN} 0: Exited with exit code 1\n{SRUN} 1: Killed\n", ranks=2)
    assert (found.rank, cause(found)) == ("1", "killed")


def test_ranks_interrupted_from_outside_are_not_at_fault() -> None:
    log = "".join(trace(f"{rank}: ", "KeyboardInterrupt\n") for rank in range(2))
    assert cause(read(log, f"{SRUN}s 0-1: Interrupt\n", ranks=2)) == "terminated"


@pytest.mark.parametrize(
    ("log", "rank"),
    [
        ("Program: gmx mdrun\nMPI rank:    3 (out of 4)\n\nFatal error:\nThe box is too small\n", "3"),
        ("ERROR on proc 2: step300-ran out of space\n", "2"),
        ("Error on rank 2: no input\n", "2"),
        ("[1]PETSC ERROR: Object is in wrong state\n", "1"),
        ("amrex::Abort::3::CFL violated !!!\n", "3"),
        ("[n1:9] *** An error occurred in MPI_Send\n[n1:9] *** reported by process [77,2]\n"
         "[n1:9] *** on communicator MPI_COMM_WORLD\n[n1:9] *** MPI_ERR_RANK: invalid rank\n", "2"),
    ],
)  # fmt: skip
def test_an_error_names_its_rank(log: str, rank: str) -> None:
    found = read(log)
    assert (found.rank, cause(found)) == (rank, OWN_ERROR)


def test_the_message_of_a_fatal_error_is_on_its_next_line() -> None:
    assert read("Fatal error:\nThe box is too small\n").lines == ("Fatal error: The box is too small",)


@pytest.mark.parametrize(
    ("log", "where"),
    [
        ("a.out: flow.c:6: step: Assertion `dt > 0' failed.\n", "flow.c:6"),
        ("At line 12 of file flow.f90 (unit = 10)\nFortran runtime error: End of file\n", "flow.f90:12"),
        ("ERROR: LoadError: no\nStacktrace:\n [1] f\n   @ Main ~/flow.jl:10\n", "~/flow.jl:10"),
        ("forrtl: severe (24): end-of-file\na.out  0000000000403E2B  MAIN__   7  flow.f90\n", "flow.f90:7"),
        ("thread 'main' panicked at src/main.rs:12:5:\nno\n", "src/main.rs:12"),
    ],
)
def test_the_place_in_other_languages(log: str, where: str) -> None:
    assert read(log).where == where
