"""Words of a program about its own end: the rank in them, what looks like it, and the lines shown."""

from __future__ import annotations

from collections.abc import Sequence

from hpclaunch.failures.known_errors import OWN_ERROR, log_words
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict
from tests.in_one_test import in_one_test


def read(lines: Sequence[str], ranks: int = 4) -> Verdict:
    launcher = "\n".join(filter(log_words("rank_lines").search, lines))
    return verdict(FailureLog(launcher, tuple(lines)), failed=True, ranks=ranks)


def cause(found: Verdict) -> str | None:
    return found.error.cause if found.error else None


def trace(error: str, place: str = "/h/a.py") -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "{place}", line 3, in <module>',
        "    raise E(words)",
        *error.splitlines(),
    ]


SHUT = (
    "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks or an "
    "attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution."
)


@in_one_test(
    "label",
    ["[hvd 2] ", "[HVD 2]: ", "(proc 2) ", "process 2: ", "[Process 2] ", "task 2: ", "[worker 2] ", "PE 2: ",
     "rank 2: ", "[rank 2] ", "<task 2> "],
)  # fmt: skip
def test_the_label_in_the_message_of_an_exception_is_its_rank(label: str) -> None:
    found = read([*trace(f"ValueError: {label}the image height is odd"), *trace(SHUT)])
    assert (found.rank, cause(found)) == ("2", OWN_ERROR)


@in_one_test(
    "words",
    ["process 2 of the pipeline has no input", "task 2 depends on task 3", "worker 2 classes, 3 wanted",
     "tasks 2: unknown", "[hvd] 2: unknown", "image 2: the height is odd", "processor 2.5: unknown"],
)  # fmt: skip
def test_a_number_in_the_message_that_is_no_label_is_no_rank(words: str) -> None:
    assert read([*trace(f"ValueError: {words}"), *trace(SHUT)]).rank is None


@in_one_test(
    "words, rank",
    [
        ("rank 1 did not answer", "1"), ("task 1 did not answer", "1"),
        ("timed out waiting for rank 1", "1"), ("timed out waiting for task 1", "1"),
        ("connection to rank 1 closed", "1"), ("connection to worker 1 lost", "1"),
        ("a message of 8 bytes received from rank 1", None),
        ("a message of 8 bytes received from task 1", None),
    ],
)  # fmt: skip
def test_the_rank_that_a_message_misses_is_not_the_one_that_wrote_it(words: str, rank: str | None) -> None:
    assert read(trace(f"RuntimeError: task 2: {words}")).rank == (rank or "2")
    assert read(trace(f"RuntimeError: {words}")).rank == rank


@in_one_test("name", ["nbody(2): ", "nbody[2]: ", "sph-solve(2): "])
def test_a_programs_own_handler_tells_signal_and_rank(name: str) -> None:
    found = read(["step 1", f"{name}caught signal 8 (floating point), writing a dump"])
    assert (found.rank, cause(found)) == ("2", "floating point exception")


@in_one_test("words", ["open(2): Permission denied", "mmap(2): out of memory", "mesh.f90(2): error #6404"])
def test_a_section_of_the_manual_or_a_line_of_a_file_is_no_rank(words: str) -> None:
    assert read(["step 1", words]).rank is None


@in_one_test("time", ["20261129 03:41:07.224410", "1129 03:41:07.224410"])
def test_a_check_of_glog_is_why_its_rank_aborted(time: str) -> None:
    lines = [f"[{rank}] I{time} 2169{rank} sfm.cpp:8] Bundle adjustment" for rank in range(3)]
    check = f"F{time} 21692 sfm.cpp:10] Check failed: n > 0 (0 vs. 0)"
    found = read([*lines, f"[2] {check}", "[2] *** Check failure stack trace: ***", "=   EXIT CODE: 6"])
    assert (found.rank, cause(found), found.lines) == ("2", OWN_ERROR, (check,))


def test_the_limit_of_mpiexec_ended_the_job_and_not_what_its_proxy_found_then() -> None:
    proxy = "[proxy:0@n1] HYD_pmcd_pmip_control_cmd_cb (pmip_cb.c:490): assert (!closed) failed"
    limit = "[mpiexec@n1] APPLICATION TIMED OUT, TIMEOUT = 5s"
    found = read(["rank 0 sweep 1", "rank 1 sweep 1", limit, proxy, proxy])
    assert (found.rank, cause(found), found.lines) == (None, "time limit", (limit,))


POOL = trace(
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
    "/usr/lib/python3.11/concurrent/futures/_base.py",
)


def test_a_pool_that_lost_a_process_tells_that_it_was_killed() -> None:
    assert cause(read(POOL, ranks=1)) == "killed"
    fault = ["Fatal Python error: Segmentation fault", "", "Current thread 0x1 (most recent call first):"]
    assert cause(read([*fault, '  File "/h/a.py", line 2 in work', *POOL], 1)) == "segmentation fault"
    assert cause(read(["CRITICAL Exception in initializer:", *trace("KeyError: 'a'"), *POOL], 1)) == OWN_ERROR


def test_the_lines_of_a_message_are_shown_after_the_name_of_its_exception() -> None:
    numpy = (
        "AssertionError: \nArrays are not equal\nNaN in tile 3 at step 2\nMismatched elements: 2 / 8 (25%)"
    )
    assert read(trace(numpy), 1).lines == (
        "AssertionError: Arrays are not equal",
        "NaN in tile 3 at step 2",
        "Mismatched elements: 2 / 8 (25%)",
    )
    assert read([*trace("RuntimeError: no kernel"), "warming up"], 1).lines == ("RuntimeError: no kernel",)


@in_one_test("stop", ["ERROR STOP 12", "STOP 12", "ERROR STOP"])
def test_the_words_before_a_stop_with_a_number_are_shown(stop: str) -> None:
    words = "===>>> : E R R O R   subdomain 0002 contains no ocean point"
    assert read(["step 1", words, stop], 1).lines == (words,)
    assert read(["step 1", "step 1", stop], 1).lines == (stop,)
    assert read(["step 1", "step 2", f"{stop} 1 no ocean"], 1).lines == (f"{stop} 1 no ocean",)


def test_a_report_of_srun_between_two_tracebacks_is_no_exception() -> None:
    head, frame, *rest = trace("ModuleNotFoundError: No module named 'torch'")
    ends = [f"srun: error: n{rank}: task {rank}: Exited with exit code 1" for rank in (1, 0)]
    script = "/var/spool/slurmd/job7/slurm_script: line 3: module: command not found"
    mixed = [script, head, *ends, head, frame, *rest, frame, *rest]
    found = read(mixed, 2)
    assert (found.rank, cause(found)) == (None, "module system")
    assert script in found.lines
    found = read(mixed[1:], 2)
    assert (found.rank, cause(found)) == (None, "Python module missing")


LOST = "RuntimeError: Connection closed by peer [127.0.0.1]:2964"
WEIGHTS = "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded"
TORCH = "/env/lib/python3.11/site-packages/torch/serialization.py"


def test_a_rank_that_alone_loads_a_checkpoint_is_named_and_of_several_none() -> None:
    def said(rank: int, words: str) -> list[str]:
        return [f"[rank{rank}]: {line}" for line in trace(words, TORCH)]

    alone = read([*said(1, WEIGHTS), *said(0, LOST), *said(2, LOST)], 3)
    assert (alone.rank, cause(alone)) == ("1", "weights only")
    both = read([*said(1, WEIGHTS), *said(0, WEIGHTS), *said(2, LOST)], 3)
    assert (both.rank, both.candidates, cause(both)) == (None, "0-1", "weights only")


ABORT = ["MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "with errorcode 71."]


def test_the_last_words_of_the_rank_that_called_mpi_abort_are_shown() -> None:
    steps = [f"solver<{rank}>: entering GMRES" for rank in range(4)]
    last = "solver<3>: the matrix has rank 118"
    found = read([*steps, last, "-" * 74, *ABORT])
    assert (found.rank, cause(found), found.lines) == ("3", "MPI_Abort", (ABORT[0], last))
    assert read([*steps, "-" * 74, *ABORT]).lines == (ABORT[0],)
    labelled = [f"[{rank}] entering GMRES" for rank in range(4)] * 2
    assert read([*labelled, "[1] the matrix has rank 118", *ABORT]).lines == (ABORT[0],)


@in_one_test("name", ["rank 3", "halo: rank 3", "halo: process 3", "halo.x: task 3"])
def test_words_with_the_rank_that_called_mpi_abort_are_shown(name: str) -> None:
    said = f"{name}: the ghost cells overlap"
    assert read([said, "-" * 74, *ABORT]).lines == (ABORT[0], said)
    assert read([said.replace("3", "2"), "-" * 74, *ABORT]).lines == (ABORT[0],)
    found = read([f"{name}: no such zone", "-" * 74, *ABORT])
    assert (found.rank, cause(found), found.lines) == ("3", OWN_ERROR, (f"{name}: no such zone",))


WARNED = """WARNING: Open MPI failed to TCP connect to a peer MPI process.
    Message:    connect() to 192.0.2.2:1028 failed
    Error:      Operation now in progress (115)"""


def test_a_field_of_a_warning_of_open_mpi_is_not_the_programs_error() -> None:
    said = "fft3d: rank 1: local extent 129 is not a multiple of 4"
    abort = [ABORT[0].replace("3", "1"), ABORT[1]]
    found = read([said, "-" * 74, *abort, "-" * 74, *WARNED.splitlines(), "-" * 74])
    assert (found.rank, cause(found), found.lines) == ("1", OWN_ERROR, (said,))
    assert cause(read(["step 1", "Error: no input (115)"])) == OWN_ERROR


def test_mpich_shows_the_signal_and_not_its_number() -> None:
    ends = ["=   PID 10667 RUNNING AT n1", "=   EXIT CODE: 9"]
    words = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
    assert read(["step 1", *ends, words]).lines == (words,)
    assert read(["step 1", *ends]).lines == ("=   EXIT CODE: 9",)


def test_the_process_that_mpich_reports_after_a_signal_may_be_one_that_it_killed() -> None:
    starts = [f"rank {rank} (pid {10667 + rank}): loading points" for rank in range(3)]
    ends = ["=   PID 10667 RUNNING AT n1", "=   EXIT CODE: 9"]
    found = read([*starts, *ends, "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"], 3)
    assert (found.rank, cause(found)) == (None, "killed")


def test_time_and_label_of_open_mpi_in_brackets() -> None:
    tag = "[Sun Nov 29 03:32:29 2026][1,{}]<std{}>: "
    steps = [tag.format(rank, "out") + "beta 5.7" for rank in (0, 1, 2, 3)]
    error = [tag.format(1, "err") + line for line in trace("KeyError: 'a'")]
    found = read([*steps, *error])
    assert (found.rank, found.where, found.lines) == ("1", "/h/a.py:3", ("KeyError: 'a'",))
