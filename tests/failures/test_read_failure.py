"""Which rank, error and place of a log count: what launchers, ranks and programs say, taken together."""

from __future__ import annotations

import pytest

from hpclaunch.failures.known_errors import OWN_ERROR
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict
from tests.in_one_test import in_one_test


def read(log: str, launcher: str = "", ranks: int = 4) -> Verdict:
    return verdict(
        FailureLog(launcher, (*log.splitlines(), *launcher.splitlines())), failed=True, ranks=ranks
    )


def cause(found: Verdict) -> str | None:
    return found.error.cause if found.error else None


def trace(label: str, error: str = "KeyError: 'a'\n") -> str:
    lines = ("Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "    run()")
    return "".join(f"{label}{line}\n" for line in lines) + (f"{label}{error}" if error else "")


@in_one_test(
    "label, other",
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


def test_a_traceback_that_rich_has_drawn_has_its_place() -> None:
    drawn = ("╭── Traceback (most recent call last) ──╮", "│ /h/a.py:12 in <module>  │", "│ ❱ 12 main()  │",
             "│ /h/a.py:7 in main  │", "╰───╯", "KeyError: 'lr'")  # fmt: skip
    found = read("\n".join(drawn))
    assert (found.where, cause(found)) == ("/h/a.py:7", OWN_ERROR)


def test_without_labels_an_exception_does_not_explain_that_of_another_process() -> None:
    lost = trace("", "DistBackendError: NET/IB : Got completion from peer 10.9.0.4<47011> with status=12\n")
    assert cause(read(f"{lost}{trace('', 'ValueError: no mask')}")) == OWN_ERROR


SRUN = "srun: error: n1: task"


def test_ranks_killed_after_the_first_failure_are_not_the_cause() -> None:
    found = read("", f"{SRUN} 2: Exited with exit code 3\n{SRUN}s 0-1,3: Killed\n")
    assert (found.rank, cause(found)) == ("2", OWN_ERROR)


def test_a_rank_killed_before_others_lost_it_is() -> None:
    lost = "[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:1\n"
    found = read(lost, f"{SRUN} 0: Exited with exit code 1\n{SRUN} 1: Killed\n", ranks=2)
    assert (found.rank, cause(found)) == ("1", "killed")


def test_a_kill_that_a_shell_tells_after_the_first_failure_is_not_the_cause() -> None:
    words = "member 1: FATAL: the step breaks the limit\n"
    shell = "run.sh: line 9: 310 Killed     ./solver\n"
    assert cause(read(words, f"{SRUN} 1: Exited with exit code 42\n{shell}")) == OWN_ERROR
    assert cause(read(words, f"{shell}{SRUN} 1: Exited with exit code 42\n")) == "killed"


@in_one_test("time", ["Nov 28 06:00:00 ", "2026-11-28T06:00:00.123Z ", "[06:00:00] "])
def test_times_before_all_lines_change_nothing(time: str) -> None:
    log = f"{trace('[rank1]: ')}{SRUN} 1: Exited with exit code 3\n{SRUN} 0: Killed\n"
    found = read("".join(f"{time}{line}\n" for line in log.splitlines()))
    assert (found.rank, found.where, cause(found)) == ("1", "/h/a.py:3", OWN_ERROR)
    assert found.failed is not None
    assert found.failed.exit_code == 3


def test_the_words_before_an_abort_tell_its_rank() -> None:
    abort = "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_SELF\nwith errorcode -1.\n"
    found = read(f"rank 3: solver diverged, giving up\n{abort}")
    assert (found.rank, cause(found)) == ("3", OWN_ERROR)


def test_a_signal_alone_takes_the_place_that_its_backtrace_tells() -> None:
    said = "Program received signal SIGFPE: x\n\nBacktrace for this error:\n#1  f\n\tat /h/flux.f90:88\n"
    found = read(said, f"{SRUN} 1: Floating point exception (core dumped)\n")
    assert (found.rank, found.where, cause(found)) == ("1", "/h/flux.f90:88", "floating point exception")


def test_ranks_interrupted_from_outside_are_not_at_fault() -> None:
    log = "".join(trace(f"{rank}: ", "KeyboardInterrupt\n") for rank in range(2))
    assert cause(read(log, f"{SRUN}s 0-1: Interrupt\n", ranks=2)) == "terminated"


NFS = """Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/util.py", line 303, in _run_finalizers
    finalizer()
OSError: [Errno 16] Device or resource busy: '.nfs0001'
"""


def test_an_exception_that_began_below_the_program_does_not_tell_that_a_job_failed() -> None:
    unknown = verdict(FailureLog(lines=("done", *NFS.splitlines())))
    assert cause(unknown) is None
    assert cause(verdict(FailureLog(lines=("step 1", *trace("").splitlines())))) == OWN_ERROR


def test_of_two_exceptions_of_a_rank_the_one_that_nothing_caught_counts() -> None:
    assert read(f"{trace('')}{NFS}").lines == ("KeyError: 'a'",)


def test_a_log_that_ends_with_the_line_of_a_frame_is_read() -> None:
    found = read("\n".join(trace("").splitlines()[:2]))
    assert (found.where, cause(found)) == ("/h/a.py:3", OWN_ERROR)


@pytest.mark.parametrize(
    ("call", "wanted"), [("shutil.rmtree(folder)", OWN_ERROR), ("load(x)", "file missing")]
)
def test_what_fails_in_the_clean_up_is_not_why_the_program_ended(call: str, wanted: str) -> None:
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    second = trace("", "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/x'\n").replace(
        "run()", call
    )
    assert cause(read(trace("") + between + second)) == wanted


def test_what_a_child_writes_after_its_parent_failed_explains_nothing() -> None:
    child = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 122, in spawn_main
    exitcode = _main(fd, parent_sentinel)
EOFError: Ran out of input
"""
    found = read(trace("") + child)
    assert (cause(found), found.where) == (OWN_ERROR, "/h/a.py:3")


@in_one_test(
    "log, rank, lines",
    [
        ("step 1\nsolver: keyword 'tmax' is not known\nsolver: stopped with 1 error\n", None, 2),
        ("0: mean error: 0.3\n1: step 1\n3: cannot find the matrix\n", "3", 1),
        ("mean error: 0.3\nthe loop ended after 0 errors\n", None, 0),
        ("table has 127 entries, 128 wanted\ngot 3 arguments but 4 are required\n", None, 2),
        ("4 workers expected, 4 joined\n8 GPUs found, 8 expected\nno restart needed\n", None, 0),
        ("waiting: 4 expected, 3 joined\nstep 3 of 10 expected\naccuracy 0.91, 0.90 required\n", None, 0),
    ],
)
def test_where_nothing_is_known_the_words_of_any_error_are_shown(
    log: str, rank: str | None, lines: int
) -> None:
    found = read(log)
    assert (found.rank, cause(found), len(found.lines)) == (rank, OWN_ERROR if lines else None, lines)


def test_the_words_before_mpi_abort_tell_why() -> None:
    log = "rank 3: the matrix is not symmetric\napplication called MPI_Abort(MPI_COMM_WORLD, 1) - process 3\n"
    found = read("", log)
    assert (found.rank, cause(found), found.lines) == ("3", OWN_ERROR, (log.splitlines()[0],))


def test_a_report_after_which_the_script_went_on_does_not_tell_that_a_job_failed() -> None:
    report = f"{SRUN} 1: Exited with exit code 1"
    log = FailureLog(report, (report, "epoch 1 done"))
    assert cause(verdict(log)) is None
    assert verdict(log, failed=True).rank == "1"
    assert verdict(log._replace(lines=("epoch 1 done", report))).rank == "1"


def test_guesses_of_a_message_are_no_errors() -> None:
    line = "The worker died. There are some potential root causes. (1) SIGKILL by OOM killer. (2) SIGSEGV."
    assert cause(read(line)) == OWN_ERROR


def torchrun(*entries: tuple[str, int, int]) -> str:
    """Two nodes' tables: each the root cause of its node, then the others."""
    said = ("  time      : 2026-11-24_10:00:{}\n  host      : n1\n  rank      : {} (local_rank: 0)\n"
            "  exitcode  : {} (pid: 9)\n")  # fmt: skip
    root = "Root Cause (first observed failure):\n"
    return "".join(root + said.format(*entry) for entry in entries)


def test_of_the_root_causes_of_several_nodes_the_earliest_counts() -> None:
    assert read("", torchrun(("05", 0, 1), ("03", 3, -11))).rank == "3"


def test_a_rank_that_left_without_a_word_is_the_one_of_which_all_others_write() -> None:
    log = "".join(f"[rank{rank}]: RuntimeError: Connection closed by peer [::1]:9\n" for rank in (0, 2))
    assert read(log, ranks=3).rank == "1"
    code = "[ERROR] [launch.py:259:sigkill_handler] ['python'] exits with return code = -11\n"
    found = read(log, code, ranks=3)
    assert (found.rank, cause(found)) == ("1", "segmentation fault")


@in_one_test(
    "log, rank",
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


@in_one_test(
    "log, where",
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


LAUNCHED = f"{SRUN} 2: Exited with exit code 1\n{SRUN} 0: Exited with exit code 1\n"
LOST = "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks\n"


@in_one_test(
    "log, launcher, candidates",
    [
        (trace("[rank0]: ") + trace("[rank2]: "), LAUNCHED, "0,2"),
        (trace("") * 2, LAUNCHED, "0,2"),
        (trace("") * 2, LAUNCHED.splitlines()[0], None),
        ("", f"{SRUN}s 0-1: Segmentation fault\n", "0-1"),
        ("", f"{SRUN} 0: Killed\nsrun: error: n2: task 3: Killed\n", "0,3"),
        ("RuntimeError: Ranks 2, 3 failed to pass monitoredBarrier in 30000 ms\n", "", "2-3"),
        ("", torchrun(("05", 0, 1)) + torchrun(("05", 1, 1)).partition("\n")[2], "0-1"),
        (trace("", LOST) + trace(""), LAUNCHED, None),
        ("0: solver: stopped with an error\n1: solver: stopped with an error\n", "", "0-1"),
        (trace("[rank1]: ", "RuntimeError: Timed out waiting 5000ms for send operation\n"), "", None),
    ],
)  # fmt: skip
def test_no_rank_is_named_where_another_is_as_likely(log: str, launcher: str, candidates: str | None) -> None:
    found = read(log, launcher)
    assert (found.rank, found.candidates) == (None, candidates)
    assert found.failed is None or found.failed.rank == candidates


def test_a_report_of_several_ranks_leaves_the_rank_that_wrote_the_error() -> None:
    found = read(trace("[rank1]: "), f"{SRUN}s 0-1: Exited with exit code 1\n")
    assert (found.rank, found.candidates) == ("1", None)


def test_the_rank_without_the_last_words_of_the_others_is_the_one_that_a_signal_ended() -> None:
    log = "".join(f"[{rank}] sum of {rank}\n" for rank in range(4))
    ends = "".join(f"[{rank}] done {rank}\n" for rank in (0, 3, 1))
    hydra = "=   PID 9 RUNNING AT n1\n=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: "
    hydra += "Killed (signal 9)\n"
    assert read(log + ends, hydra).rank == "2"
    assert read(f"{log}{ends}[2] other words\n", hydra).rank is None
    assert read(log + ends.partition("\n")[2], hydra).rank is None


@in_one_test("words, rank", [("I am rank {}", "1"), ("local rank {}", None), ("near rank 0", None)])
def test_the_one_rank_in_the_words_of_a_process_is_its_own(words: str, rank: str | None) -> None:
    said = "".join(f"(Worker pid={70 + number}) {words.format(number)}\n" for number in range(3))
    head = "ray.exceptions.RayTaskError(KeyError): ray::Worker.step() (pid=71, ip=192.0.2.1, repr=<x>)\n"
    frames = '  File "/h/a.py", line 3, in step\n    run()\nKeyError: 4\n'
    assert read(f"{said}{head}{frames}", ranks=3).rank == rank


def test_a_number_within_a_node_names_no_rank_of_several_nodes() -> None:
    log = FailureLog(lines=tuple(f"{trace('[default0]:')}[default1]:step 1\n[default1]:step 2".splitlines()))
    assert verdict(log, failed=True, ranks=4, nodes=1).rank == "0"
    assert verdict(log, failed=True, ranks=4, nodes=2).rank is None
    both = "".join(f"n2: [default1]:{line}\n" for line in trace("[rank9]: ").splitlines())
    found = read(f"n1: [default0]:step 1\nn1: [default0]:step 2\n{both}", ranks=16)
    assert (found.rank, found.where) == ("9", "/h/a.py:3")


@pytest.mark.parametrize(
    ("other", "rank"), [("ValueError: no mask\n", None), ("ValueError: master closed the connection\n", "0")]
)
def test_of_two_ranks_with_own_errors_either_may_be_the_first(other: str, rank: str | None) -> None:
    found = read(trace("0: ") + trace("2: ", other), f"{SRUN} 0: Exited with exit code 1\n{LAUNCHED}")
    assert (found.rank, found.candidates) == (rank, None if rank else "0,2")


@in_one_test(
    "words",
    ["TP rank 1", "Local rank 1", "LOCAL_RANK=1", "pipeline stage rank 1", "tp_rank 1", "node_rank: 1"],
)
def test_a_number_that_is_no_rank_of_the_job_names_none(words: str) -> None:
    assert read(f"step 1\nERROR: cannot read the mesh on {words}: no such block\n").rank is None


@in_one_test("label", ["worker", "GPU", "stage", "shard", "node", "local_rank", "replica"])
def test_a_label_that_counts_something_else_names_no_rank(label: str) -> None:
    steps = "".join(f"{label} {number}: step {step}\n" for step in range(3) for number in range(4))
    assert read(steps + trace(f"{label} 2: "), ranks=8).rank is None
    assert read(steps.replace(label, "n1.site") + trace("n1.site 2: "), ranks=8).rank == "2"


def test_words_of_a_logger_before_each_line_of_a_traceback_are_not_read() -> None:
    words = "2026-11-28 12:00:03,{} CRITICAL solve | "
    lines = [words.format(at) + line for at, line in enumerate(("uncaught", *trace("").splitlines()))]
    found = read("\n".join(lines))
    assert (cause(found), found.lines, found.where) == (OWN_ERROR, ("KeyError: 'a'",), "/h/a.py:3")


def test_an_adapter_that_failed_counts_before_the_timeouts_of_other_ranks() -> None:
    """They end by SIGABRT, as what waits for it does."""
    adapter = (
        "3: n1:41:42 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4> with status=12 opcode=129"
    )
    waits = "{0}: [rank{0}]:[E1128 10:21:33] [Rank {0}] Watchdog caught collective operation timeout"
    ends = [f"{SRUN} 3: Exited with exit code 1", *(f"{SRUN} {rank}: Aborted" for rank in range(3))]
    lines = (adapter, *(waits.format(rank) for rank in range(3)), *ends)
    found = verdict(FailureLog("\n".join(ends), lines), failed=True, ranks=4)
    assert (found.rank, cause(found)) == (None, "NCCL InfiniBand failed")


def test_a_rank_that_chose_its_exit_code_left_for_what_it_said_last() -> None:
    said = "0: sweep 1\n1: sweep 1\n1: rows 3 and 4 it is then\n0: sweep 2\n"
    own = read(said, f"{SRUN} 1: Exited with exit code 4\n")
    assert (own.rank, cause(own), own.lines[-1]) == ("1", OWN_ERROR, "rows 3 and 4 it is then")
    by_signal = read(said, f"{SRUN} 1: Terminated\n")
    assert (cause(by_signal), by_signal.lines) == (None, ())


def test_a_dead_worker_of_ray_counts_after_errors_of_the_program() -> None:
    words = "A worker died or was killed while executing "
    lost = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    for dead in (
        f"(raylet) {words}a task by an unexpected system error.\n",
        f"2019-11-15 13:44:10,711 WARNING worker.py:1037 -- {words}task e36ba8830369ffffffff01000000.\n",
    ):
        found = read(dead + trace("", lost))
        assert (cause(found), found.where) == ("killed", "/h/a.py:3")
        assert cause(read(dead + trace(""))) == OWN_ERROR
        assert cause(verdict(FailureLog(lines=tuple(dead.splitlines())))) is None


def test_what_a_launcher_writes_of_ranks_that_have_ended_is_no_cause() -> None:
    late = "[n1:24154] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2147\n"
    abort = "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n"
    ended = "  Process name: [[25027,1],2]\n  Exit code:    3\n"
    for report in (abort, ended):
        found = read(f"step 1\nthe matrix is singular, giving up\n{report}{late}", report)
        assert (found.rank, cause(found)) == ("2", OWN_ERROR)


def test_an_end_of_nodes_without_words_is_explained_only_by_what_explains_it() -> None:
    """srun numbers the launchers of two nodes, and the lines name ranks."""
    ends = [f"{SRUN} {node}: Aborted (core dumped)" for node in (0, 1)]
    waits = "[rank11]:[E1128 10:21:33] [Rank 11] Watchdog caught collective operation timeout"
    adapter = "NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4> with status=12 opcode=129"
    names = "n1:41:42 [3] NCCL INFO comm 0x5 rank 11 nranks 16 cudaDev 3"
    for line, wanted in ((f"n1:41:42 [3] {adapter}", "NCCL InfiniBand failed"), ("step 4", "aborted")):
        lines = (names, line, waits, *ends)
        found = verdict(FailureLog("\n".join(ends), lines), failed=True, ranks=16, nodes=2)
        assert cause(found) == wanted


def test_a_process_that_writes_the_same_exception_twice_went_on_after_the_first() -> None:
    others = trace("[1] ") + trace("[3] ")
    once = verdict(FailureLog(lines=tuple((others + trace("[2] ")).splitlines())), ranks=4)
    assert cause(once) == OWN_ERROR
    twice = verdict(FailureLog(lines=tuple((others + trace("[2] ") * 2).splitlines())), ranks=4)
    assert cause(twice) is None


def test_a_rank_whose_stderr_holds_an_exception_went_on_with_its_own_label() -> None:
    words = trace("").rstrip().splitlines()
    steps = ["rank 0: from scratch", "rank 1: from scratch", "rank 0: step 2"]
    for last, wanted in ((["rank 1: step 2"], None), ([], OWN_ERROR)):
        log = FailureLog(lines=(*steps[:2], *words, steps[2], *last), stderr={"1": tuple(words)})
        assert cause(verdict(log, ranks=2)) == wanted


def test_a_launcher_of_the_programs_own_tells_the_process_of_each_rank() -> None:
    told = "".join(f"belt: n{rank // 2}:{rank} is process {5400 + rank}\n" for rank in range(4))
    found = read(f"{told}belt.sh: line 15:  5402 Bus error               ./cell $i\n")
    assert (found.rank, cause(found)) == ("2", "bus error")
