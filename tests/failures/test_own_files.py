"""Log files that a program writes itself: whose they are by their names, how they end, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from hpclaunch.failures.known_errors import OWN_ERROR
from hpclaunch.failures.log_events import Event
from hpclaunch.failures.own_files import (
    errors_of_files,
    last_error,
    ranks_of_names,
    tells_why,
    verdict_of_all,
)
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict
from tests.in_one_test import in_one_test

TIMED_OUT = (
    "Traceback (most recent call last):",
    '  File "/h/md.py", line 9, in <module>',
    "    dist.all_reduce(x)",
    "RuntimeError: [../gloo/unbound_buffer.cc:81] Timed out waiting 12000ms for recv operation to complete",
)
LOST = ("RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4711",)
STEPS = ("2026-11-29 13:00:00,123 INFO step 1 loss 0.51", "2026-11-29 13:00:09,456 INFO step 2 loss 0.49")


def trace(error: str, start: str = "main") -> tuple[str, ...]:
    frames = (
        f'  File "/h/md.py", line 7, in {start}',
        "    advance(x)",
        '  File "/h/forces.py", line 22, in read',
    )
    return ("Traceback (most recent call last):", *frames, "    rows.append(float(c))", *error.splitlines())


def logged(error: str) -> tuple[str, ...]:
    """The end of a file of Python's logging, by log.exception."""
    return (*STEPS, "2026-11-29 13:00:10,007 ERROR run ended", *trace(error))


@in_one_test(
    "names, ranks, nodes, told",
    [
        (["logs/rank_0.log", "logs/rank_2.log"], 4, 2, "0 2"),
        (["logs/rank0003.log"], 4, 2, "3"),
        (["out/mpi_rank-1/log.txt", "notes2.txt"], 4, 1, "1 -"),
        (["runs/20261129_130001/rank=1.log", "runs/20261129_130002/rank=3.log"], 4, 2, "1 3"),
        (["train.0.log", "train.1.log", "train.2.log", "train.3.log"], 4, 2, "0 1 2 3"),
        (["worker-0/out.txt", "worker-1/out.txt"], 2, 1, "0 1"),
        (["a.0000.log", "a.0001.log", "a.0003.log"], 4, 1, "0 1 3"),
        (["rsl.error.0000", "rsl.error.0001", "rsl.out.0000", "rsl.out.0001"], 2, 1, "0 1 0 1"),
        (["run_3/out.0.log", "run_3/out.1.log", "run_4/out.0.log"], 2, 1, "0 1 -"),  # the last one is alone
        (["logs/rank_1.log", "logs/rank_2.log"], 2, 1, "- -"),  # from 1 on
        (["p.1.log", "p.2.log", "p.3.log"], 3, 1, "- - -"),
        (["p.1.log", "p.2.log"], 4, 1, "- -"),
        (["a.0.log", "a.1.log"], 4, 2, "- -"),  # two nodes, or the ranks of one
        (["worker-0.log", "worker-1.log"], 4, 1, "- -"),  # those of one rank's loader
        (["gpu0.log", "gpu1.log"], 4, 1, "- -"),
        (["local_rank_0.log", "local_rank_1.log"], 4, 2, "- -"),
        (["fort.101", "fort.102"], 2, 1, "- -"),
        (["epoch_0.txt", "epoch_1.txt"], 2, 1, "- -"),
        (["fold-0/log.txt", "fold-1/log.txt"], 2, 1, "- -"),
        (["train.log.1", "train.log.2"], 3, 1, "- -"),  # of a handler that rotates
        (["solver3.log"], 4, 1, "-"),
        (["x/0/y1.log", "x/1/y1.log", "x/0/y0.log"], 2, 1, "- 1 0"),
    ],
)  # fmt: skip
def test_whose_file_it_is(names: Sequence[str], ranks: int, nodes: int, told: str) -> None:
    found = ranks_of_names(names, ranks, nodes)
    assert [found.get(name, "-") for name in names] == told.split()


LOGURU = """2026-11-29 13:00:00.123 | INFO     | __main__:main:12 - step 2
2026-11-29 13:00:01.456 | ERROR    | __main__:<module>:31 - An error has been caught:
Traceback (most recent call last):

> File "/h/train.py", line 31, in <module>
    main()
    └ <function main at 0x7f>

  File "/h/train.py", line 14, in main
    rows = table[key]
           │     └ 'depth'
           └ {}

KeyError: 'depth'
"""
PYDANTIC = "pydantic_core.ValidationError: 1 validation error for Settings\nrate\n  Input should be positive"
AFTER = "2026-11-29 13:00:11,000 "


@in_one_test(
    "lines, said",
    [
        (logged("ValueError: could not convert string to float: '1.2.3'"), "ValueError: could not convert"),
        (LOGURU.splitlines(), "KeyError: 'depth'"),
        (logged(PYDANTIC), "pydantic_core.ValidationError: 1 "),
        ((*logged("KeyError: 'a'"), f"{AFTER}INFO shutting down"), "KeyError: 'a'"),
        ((*logged("KeyError: 'a'"), f"{AFTER}CRITICAL rank 2 leaves"), "KeyError: 'a'"),
        ((*logged("KeyError: 'a'"), f"{AFTER}DEBUG drain: {LOST[0]}"), "KeyError: 'a'"),
        ((*logged("KeyError: 'a'"), *trace(LOST[0])), "KeyError: 'a'"),
        (("t 1", "forrtl: severe (64): input conversion error, unit 10"), "forrtl: severe (64)"),
        (("cycle 12", "FATAL: negative volume in cell 77"), "FATAL: negative volume"),
        (("cycle 12", "ERROR: negative volume in cell 77"), "ERROR: negative volume"),
        ((*logged("KeyError: 'a'"), f"{AFTER}INFO step 3 loss 0.48"), None),
        ((*logged("KeyError: 'a'"), f"{AFTER}DEBUG step 3"), None),
        (("  12   0.25", "FATAL: the time step is 0", "  13   0.25"), None),
        ((*STEPS, f"{AFTER}WARNING no upload", *trace("OSError: quota")), None),
        ((*STEPS, f"{AFTER}ERROR sample 12 is unreadable, skipping", *trace("KeyError: 'a'")), None),
        ((*STEPS, f"{AFTER}WARNING the loss is NaN"), None),
        ((*logged(LOST[0]), *trace("AttributeError: 'NoneType' object has no attribute 'barrier'")), None),
        (TIMED_OUT, None),
        ((*STEPS, *trace("KeyboardInterrupt")), None),
        ((*STEPS, *trace("md.Stopped: SIGTERM after 12 steps")), None),
        ((*STEPS, *trace("SystemExit: 143")), None),
        (STEPS, None),
    ],
)  # fmt: skip
def test_the_error_with_which_a_file_ends(lines: Sequence[str], said: str | None) -> None:
    found = last_error(lines)
    assert (found.lines[0] if found else "").startswith(said or "-") == bool(said)
    assert bool(found) == bool(said)


def files(texts: dict[str, Sequence[str]]) -> tuple[Event, ...]:
    return errors_of_files(texts, ranks=4, nodes=1)


def judged(log: FailureLog) -> Verdict:
    return verdict_of_all(log, failed=True, ranks=4)


def cause(found: Verdict) -> str | None:
    return found.error.cause if found.error else None


def ended(*ends: tuple[int, int]) -> str:
    return "\n".join(f"hpclaunch: task rank {rank} on host n1 failed (Exit {code})" for rank, code in ends)


BAD = logged("ValueError: could not convert string to float: '1.2.3'")
WAITED = FailureLog(stderr=dict.fromkeys("012", TIMED_OUT))


def test_the_rank_whose_file_ends_with_an_error_for_which_the_others_waited() -> None:
    log = WAITED._replace(files=files({"logs/rank_0": STEPS, "logs/rank_1": STEPS, "logs/rank_3": BAD}))
    found = judged(log)
    assert (found.rank, cause(found), found.file) == ("3", OWN_ERROR, "logs/rank_3")
    assert found.lines == ("ValueError: could not convert string to float: '1.2.3'",)
    assert (found.where, found.file_lines) == ("/h/forces.py:22", 1)
    healthy = judged(WAITED._replace(files=files({"logs/rank_0": (*BAD, *STEPS), "logs/rank_3": STEPS})))
    assert healthy == verdict(WAITED, failed=True, ranks=4)


def test_a_bare_exit_code_and_the_file_of_that_rank_or_of_another_one() -> None:
    log = FailureLog(ended((2, 1)), ("step 1",), stderr={"2": ("step 1",)})
    own = judged(log._replace(files=files({"rank2.log": BAD})))
    assert (own.rank, own.failed and own.failed.exit_code, own.file) == ("2", 1, "rank2.log")
    line = judged(log._replace(files=files({"rank2.log": ("ERROR: negative volume in cell 77",)})))
    assert (line.rank, line.lines) == ("2", ("ERROR: negative volume in cell 77",))
    other = judged(log._replace(files=files({"rank3.log": BAD})))
    assert (other.rank, other.candidates, other.file) == (None, "2-3", "rank3.log")
    # Of a neighbour that is gone, or where a signal ended the reported rank.
    lost = log._replace(files=files({"rank3.log": logged("RuntimeError: the left peer is gone")}))
    assert (judged(lost).rank, judged(lost).file) == ("2", "rank3.log")
    killed = FailureLog(ended((2, 137)), ("step 1",), files=files({"rank3.log": BAD}))
    assert (judged(killed).rank, cause(judged(killed)), judged(killed).file) == ("2", "killed", None)
    # A line alone, of a rank that no launcher reports, does not say that the rank ended.
    assert judged(log._replace(files=files({"rank3.log": ("ERROR: no plot",)}))).file is None


def test_several_ranks_with_errors_are_candidates() -> None:
    log = FailureLog(lines=("step 1",))
    both = judged(log._replace(files=files({"rank1": BAD, "rank2": logged("KeyError: 'a'")})))
    assert (both.rank, both.candidates, both.ranks_alike) == (None, "1-2", 1)
    alike = judged(log._replace(files=files({"rank1": BAD, "rank2": BAD})))
    assert (alike.candidates, alike.ranks_alike) == ("1-2", 2)
    waits = logged("TimeoutError: no answer of the data server")
    assert judged(log._replace(files=files({"rank1": waits, "rank2": BAD}))).rank == "2"
    alone = judged(log._replace(files=files({"rank1": waits})))
    assert (alone.rank, alone.candidates, alone.file) == (None, None, "rank1")


def test_no_rank_is_named_where_the_names_do_not_tell_it() -> None:
    for names in (("p_1", "p_2", "p_3", "p_4"), ("fort.101", "fort.102"), ("epoch_0", "epoch_1")):
        found = judged(WAITED._replace(files=files({names[0]: BAD, **dict.fromkeys(names[1:], ())})))
        assert (found.rank, found.candidates, found.file) == (None, None, names[0])
        assert cause(found) == OWN_ERROR
    missing = logged("FileNotFoundError: [Errno 2] No such file or directory: 'a'")
    assert judged(WAITED._replace(files=files({"p_1": missing, "p_2": BAD}))).file is None
    reported = FailureLog(ended((2, 1)), ("step 1",), files=files({"p_1": BAD, "p_2": ()}))
    assert (judged(reported).rank, judged(reported).file) == ("2", "p_1")  # its launcher names that rank
    many = errors_of_files({f"rank{n}": BAD if n == 3 else () for n in range(400)}, ranks=512, nodes=8)
    assert [event.rank for event in many] == [None]


def test_labels_of_other_ranks_in_a_file_or_words_about_one_count_more_than_its_name() -> None:
    labelled = [f"[rank{n % 2 + 2}]: step {n}" for n in range(4)] + [f"[rank2]: {line}" for line in BAD[3:]]
    assert [event.rank for event in files({"p0": labelled, "p1": (), "p2": (), "p3": ()})] == [None]
    accuses = logged("RuntimeError: no scores from worker 1 within 14 s")
    assert [event.rank for event in files({"rank0": accuses})] == ["1"]
    named = logged("ValueError: [rank 2] the image height is odd")
    assert [event.rank for event in files({"p_1": named, "p_4": ()})] == ["2"]


def test_a_report_about_a_missing_rank_and_that_ranks_own_file() -> None:
    report = "ocean[0] FATAL step 0: no halo from rank 3 within 12 s, aborting the whole model"
    log = FailureLog(ended((0, 75)), (report,), stderr={"0": (report,)})
    found = judged(log._replace(files=files({f"o.{n}.log": BAD if n == 3 else () for n in range(4)})))
    assert (found.rank, found.file, found.file_lines) == ("3", "o.3.log", 1)
    assert found.lines == ("ValueError: could not convert string to float: '1.2.3'", report)
    other = log._replace(files=files({"rank2": BAD}))
    assert judged(other) == verdict(log, failed=True, ranks=4)


def test_what_a_rank_says_itself_needs_no_file() -> None:
    own = FailureLog(ended((1, 1)), trace("KeyError: 'a'", "<module>"))
    assert judged(own._replace(files=files({"rank2": BAD}))) == verdict(own, failed=True, ranks=4)
    said = ("step 7", "the mesh must not be empty")
    words = FailureLog(ended((1, 1)), said)
    for log, told in ((own, True), (words, True), (WAITED, False), (FailureLog(), False)):
        assert tells_why(verdict(log, failed=True, ranks=4)) == told
