"""The lines of one rank, as launchers label them."""

from __future__ import annotations

from hpclaunch.failures.rank_labels import RankLines, by_rank, with_labels
from tests.in_one_test import in_one_test


@in_one_test(
    "label",
    [
        " {}: ",
        "{}: ",
        "[1,{}]<stdout>: ",
        "[1,{}]<stderr>:",
        "[prterun-n1-77@1,{}]<stdout>: ",
        "[{}] ",
        "rank{}: ",
        "[rank{}]: ",
    ],
)
def test_lines_of_one_rank_in_pieces(label: str) -> None:
    log = "noise\n" + "".join(f"{label.format(rank)}line {rank}\n" for rank in (1, 0, 11, 1))
    got: list[bytes] = []
    lines = RankLines(1, got.append)
    for at in range(0, len(log), 3):
        lines(log[at : at + 3].encode())
    lines(label.format(1).encode() + b"without an end")
    lines.end()
    assert b"".join(got) == b"line 1\nline 1\nwithout an end\n"
    assert lines.ranks == {0, 1, 11}


def test_a_log_without_labels_names_no_rank() -> None:
    lines = RankLines(0, lambda data: None)
    lines(b"epoch 0: loss 3\n12:30 started\n[INFO] x\n")
    assert lines.ranks == set()


def test_labels_of_processes_split_a_log_and_name_no_rank() -> None:
    for one, other in (
        ("n1: ", "n2: "),
        ("(Worker pid=7) ", "(Worker pid=8, ip=10.0.0.2) "),
        ("[trainer0]: ", "[trainer1]: "),
        ("[n1:0]:", "[n2:0]:"),
    ):
        log = [f"{label}step {number}" for number in range(3) for label in (one, other)]
        assert by_rank([*log, "done"]) == [
            *((line[: -len("step 0")].rstrip(), line[-len("step 0") :]) for line in log),
            (None, "done"),
        ]


def test_a_name_that_does_not_repeat_is_no_label() -> None:
    log = [f"epoch{number}: loss {1 / number}" for number in range(1, 9)]
    assert by_rank(log) == [(None, line) for line in log]


def test_labels_in_brackets_and_of_pods() -> None:
    for label, owner in (("<{}> ", "2"), ("r{:02d}| ", "2"), ("({}) ", "2"),
                         ("rank{}-1  | ", "2"), ("[{}/8] ", "[2/8]"),
                         ("[pod/train-{}/pytorch] ", "[pod/train-2/pytorch]")):  # fmt: skip
        log = [f"{label.format(rank)}residual {step}.5" for step in range(3) for rank in (0, 2, 1)]
        assert by_rank(log)[1] == (owner, "residual 0.5")


def test_a_traceback_without_labels_is_of_the_rank_whose_logger_wrote_before_it() -> None:
    info = [f"[rank {rank}] INFO step {step}" for step in range(4) for rank in (0, 1)]
    trace = ["Traceback (most recent call last):", '  File "a.py", line 3, in <module>', "KeyError: 'a'"]
    for error in (["[rank 1] ERROR run failed", *trace], [f"[rank 1] ERROR {trace[0]}", *trace[1:]]):
        assert {label for label, _ in by_rank([*info, *error, "done"])[8:-1]} == {"1"}
        assert by_rank([*info, *error, "done"])[-1] == (None, "done")
    assert by_rank([*info, *trace])[-1][0] is None


def test_the_only_line_may_have_a_label() -> None:
    assert by_rank(["[2] a.c:4: Assertion `x' failed.", "=   EXIT CODE: 6"])[0] == (
        "2",
        "a.c:4: Assertion `x' failed.",
    )
    assert by_rank(["rank 2: out of bounds"]) == [(None, "rank 2: out of bounds")]


OWN_FORMS = (
    "(p={0:04d}) {1}",
    "[pe {0:04d}] {1}",
    "INFO  rank={0}/3 {1}",
    "12:00:01 | INFO | w{0}of3 | {1}",
    "P{0}: {1}",
    "[  0.72s w{0}] {1}",
    "worker-{0} | 12:00:01 | {1}",
    "4502 ms  INFO  replica-{0}  {1}",
)
STEPS = (0, 2, 1, 1, 2, 0, 0, 1, 2)


@in_one_test("form", OWN_FORMS)
def test_a_form_of_the_programs_own_names_the_rank_of_a_line(form: str) -> None:
    lines = [form.format(rank, f"sweep done, residual 0.{at}") for at, rank in enumerate(STEPS)]
    told = by_rank(with_labels([*lines, "wrote nothing", form.format(1, "cannot go on")], 3))
    assert [rank for rank, _ in told] == [*map(str, STEPS), None, "1"]
    assert told[-1][1].endswith("cannot go on")


@in_one_test("form", OWN_FORMS)
def test_a_number_that_is_no_rank_of_the_job_is_no_label(form: str) -> None:
    lines = [form.replace("of3", "").replace("/3", "").format(rank, "sweep done") for rank in (*STEPS, 7)]
    assert with_labels(lines, 3) == tuple(lines)


@in_one_test("form", ("step {0}: {1}", "[epoch {0}] {1}", "layer={0} | {1}", "it {0}  {1}", "gpu{0}: {1}"))
def test_a_number_of_something_else_is_no_label(form: str) -> None:
    lines = [form.format(rank, "done") for rank in STEPS]
    assert with_labels(lines, 3) == tuple(lines)


@in_one_test("form", ("{0}/4 tests passed", "[{0}/4] linking", "pass {0}/4  done", "{0} of 4 files copied"))
def test_a_number_that_counts_up_to_that_of_the_ranks_is_no_label(form: str) -> None:
    lines = [form.format(number) for number in (1, 1, 2, 3)]
    assert with_labels(lines, 4) == tuple(lines)
    assert with_labels([*lines, form.format(1)], 4) != (*lines, form.format(1))


def test_the_name_of_a_process_before_its_traceback_tells_its_rank() -> None:
    """CPython 3.11's multiprocessing."""
    said = [f"4502 ms  INFO  replica-{rank}  station {at}" for at, rank in enumerate(STEPS)]
    trace = [
        "Process replica-2:",
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in f',
        "KeyError: 4",
    ]
    told = by_rank(with_labels([*said, *trace], 3))
    assert [rank for rank, _ in told[-4:]] == ["2"] * 4
    alone = by_rank(with_labels(["Process Process-2:", *trace[1:]], 3))
    assert {rank for rank, _ in alone} == {None}
