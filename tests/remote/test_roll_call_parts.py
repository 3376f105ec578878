"""The parts of the roll call: which rank a process is, where it stands, in which words it is said."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.remote import roll_call
from hpclaunch.remote.look import MARK
from hpclaunch.remote.roll_call import (
    call_in,
    gained,
    kernel_wait,
    main_process,
    moved,
    names_of,
    nodes_in,
    numbered,
    otherwise,
    own_frame,
    place_of,
    ranks_in,
    shown_frames,
    span,
    woken,
    words_of,
)
from tests.in_one_test import in_one_test

TRAIN = ["/home/me/train.py", 88, "train_step"]
TORCH = ["/env/lib/python3.11/site-packages/torch/distributed/c10d.py", 2810, "all_reduce"]


def process(pid: int = 1, parent: int = 0, program: str = "python", **variables: str) -> dict[str, Any]:
    return {"pid": pid, "parent": parent, "program": [program, "train.py"], "variables": variables}


def looked(first: dict[str, Any], **second: Any) -> dict[str, Any]:
    """A process whose second look differs from the first one in these."""
    return {**process(), "first": first, "second": {**first, **second}}


def test_answers_in_pieces_are_put_together_in_their_order() -> None:
    text = json.dumps({"processes": [{"pid": 1}]})
    pieces = [text[:5], text[5:9], text[9:]]
    lines = [f"12: {MARK}n1 {at}/3 {piece}" for at, piece in enumerate(pieces)]
    assert nodes_in("\n".join([lines[2], lines[0], "noise", lines[1]])) == [("n1", [{"pid": 1}])]
    assert nodes_in("\n".join(lines[:2])) == []
    assert nodes_in(f"{MARK}n1 0/1 []\n{MARK}n2 0/1 {{}}") == []


def test_ranks_are_those_of_the_surest_variables_and_the_largest_step() -> None:
    """srun's own variables are in the batch script, too: a launcher's inner ones come first."""
    slurm = [process(pid, SLURM_PROCID=str(pid), SLURM_STEP_ID="0") for pid in range(3)]
    probe = process(9, SLURM_PROCID="0", SLURM_STEP_ID="1")
    found = ranks_in([("n1", [*slurm[:2], probe]), ("n2", slurm[2:])])
    assert {rank: (node, [one["pid"] for one in own]) for rank, (node, own) in found.items()} == {
        0: ("n1", [0]),
        1: ("n1", [1]),
        2: ("n2", [2]),
    }
    for rank in ("", "x", "-1", "12345678"):
        assert ranks_in([("n1", [process(1, SLURM_PROCID=rank, SLURM_STEP_ID="0")])]) == {}
    helper = process(1, program="/usr/bin/orted", OMPI_COMM_WORLD_RANK="0")
    own = process(2, OMPI_COMM_WORLD_RANK="0", SLURM_PROCID="7", SLURM_STEP_ID="0")
    assert list(ranks_in([("n1", [helper, own])])) == [0]


def test_the_process_of_a_rank_has_stacks_or_is_the_uppermost_that_is_no_shell() -> None:
    shell, python, loader = process(50, 1, "bash"), process(51, 50), process(52, 51)
    assert main_process([loader, shell, python])["pid"] == 51
    assert main_process([shell])["pid"] == 50
    loader["first"] = {"stacks": [[TRAIN]]}
    assert main_process([loader, shell, python])["pid"] == 52
    twins = [process(61, 1), process(60, 1)]
    assert main_process(twins)["pid"] == 60, "of equal ones the older"
    circle = [process(70, 71), process(71, 70)]
    assert main_process(circle)["pid"] == 70


RAY = "/env/lib/python3.11/site-packages/ray"
RAYS = (
    ["/env/bin/python3", "/env/bin/ray", "start", "--head", "--port=14762"],
    ["/env/bin/python", "-u", f"{RAY}/_private/log_monitor.py"],
    ["ray::IDLE"],
    ["ray::DashboardAgent"],
)


def test_the_process_of_a_rank_with_ray_is_the_driver_or_a_task() -> None:
    """Whichever has the lower number: numbers of processes begin anew."""
    own = [{**process(40 + at, 1), "program": words} for at, words in enumerate(RAYS)]
    for one in own:
        one["first"] = {"stacks": [[["/env/bin/ray", 8, "<module>"]]]}
    driver = {**process(60, 1), "program": ["python3", "my/ray/train.py"]}
    task = {**process(99, 43), "program": ["ray::Store.get"]}
    assert main_process([*own, driver, task])["pid"] == 60
    assert main_process([*own, task])["pid"] == 99
    assert otherwise(main_process(own)) == "Ray, without a task"
    waits = {"state": "S", "call": "futex", "ticks": 5, "switches": 7}
    assert moved(looked({**waits, "stacks": [[TRAIN]]}, switches=99)) is True
    get = [f"{RAY}/_private/worker.py", 1007, "get_objects"]
    assert moved(looked({**waits, "stacks": [[get, TRAIN]]}, switches=99)) is None
    idle = {**looked({**waits, "stacks": [[get]]}, switches=99), "program": RAYS[2]}
    assert moved(idle) is None


def test_functions_around_the_one_that_is_called_do_not_name_a_place() -> None:
    def stands(*names: str) -> str:
        stack = [[f"{RAY}/x.py", 1, name] for name in names] + [TRAIN]
        return otherwise({**process(), "first": {"stacks": [stack]}})

    assert stands("get_objects", "get", "wrapper", "auto_init_wrapper") == "get()"
    assert stands("forward", "_call_impl", "_wrapped_call_impl") == "forward()"
    assert stands("pad") == "pad()"
    assert stands("wrapper") == "wrapper()"


def test_the_frame_of_the_program_is_the_innermost_of_no_library() -> None:
    assert own_frame([TORCH, TRAIN, ["/home/me/main.py", 1, "main"]]) == 1
    assert own_frame([TRAIN, TORCH]) == 0
    assert own_frame([TORCH, TORCH]) == own_frame([]) == 0
    compiled = ["<string>", 1, "<module>"]
    assert own_frame([compiled, TORCH, TRAIN]) == 2, "a library has compiled it"
    assert own_frame([TORCH, compiled]) == 1, "python -c"


def test_numbers_of_collectives_come_from_the_marks_else_from_the_recorder() -> None:
    mark = {"first": {"collective": [17, "allreduce", True]}, "recorder": {"0": [[3, "x", "started"]]}}
    assert numbered(mark) == ("allreduce", 17, True)
    assert numbered({"first": {"collective": [17, "allreduce", False]}}) == ("allreduce", 17, False)

    def recorded(**groups: list[list[Any]]) -> Any:
        return numbered({"first": {}, "recorder": groups})

    done, open_ = [4, "nccl:all_gather", "completed"], [5, "nccl:all_reduce", "started"]
    assert recorded(a=[done, open_]) == ("allreduce", 5, True)
    assert recorded(a=[open_, done]) == ("allgather", 4, False)
    assert recorded(a=[open_], b=[done]) == ("allreduce", 5, True), "the one that is not complete"
    assert recorded(a=[[6, "mine", "started"]]) == ("mine", 6, True)
    assert recorded(a=[]) is recorded() is None


def test_where_a_rank_stands() -> None:
    def place(**first: Any) -> dict[str, Any]:
        found = place_of({**process(), "first": {"state": "S", "call": "", "waits": "", **first}})
        return {key: value for key, value in found.items() if value}

    stack = {"stacks": [[TORCH, TRAIN]]}
    assert place(**stack) == {"what": "allreduce", "at": "train.py:88", "collective": True}
    assert place(**stack, collective=[3, "barrier", True]) == {
        "what": "barrier",
        "number": 3,
        "at": "train.py:88",
        "collective": True,
    }
    assert place(**stack, collective=[3, "barrier", False])["what"] == "allreduce"
    assert place(**stack, state="T")["what"] == "stopped by a signal (state T)"
    assert place(**stack, state="t")["what"] == "stopped by a debugger"
    file = place(**stack, call="openat", path="/scratch/x")
    assert (file["what"], file["path"], file.get("collective")) == ("open()", "/scratch/x", None)
    assert place(**stack, call="read", path="socket:[77]")["what"] == "allreduce", "by which it waits"
    assert place(call="read", path="pipe:[77]") == {"what": "read()", "path": "a pipe"}
    assert place(call="getdents64", path="/data") == {"what": "list()", "path": "/data"}
    disk = place(**stack, state="D", waits="ptlrpc_queue_wait")
    assert disk["what"] == "allreduce (waiting for Lustre, state D)"
    assert place(state="D", waits="x")["what"] == "a system call (waiting in x, state D)"
    assert place(state="D")["what"] == "a system call (waiting in the kernel, state D)"


@in_one_test(
    "waits, words",
    [
        ("rpc_wait_bit_killable", "waiting for NFS"),
        ("nfs4_proc", "waiting for NFS"),
        ("cl_sync_io_wait", "waiting for Lustre"),
        ("gpfsFileRead", "waiting for GPFS"),
        ("io_schedule", "waiting for a disk or file system"),
        ("__iomap_dio_rw", "waiting for a disk or file system"),
        ("__sync_dirty_buffer", "waiting for a disk or file system"),
        ("jbd2_log_wait_commit", "waiting for a disk or file system"),
        ("wait_for_partner", "waiting for the other end of a FIFO"),
        ("pipe_read", "reading a pipe"),
        ("hrtimer_nanosleep", "asleep"),
        ("not_gpfs", ""),
        ("", ""),
    ],
)
def test_what_the_kernel_waits_for(waits: str, words: str) -> None:
    assert kernel_wait({"waits": waits}) == words


@in_one_test(
    "line, call",
    [
        ("x = comm.recv(source=left)", "recv"),
        ("y = np.sum(comm.recv(buf))", "recv"),
        ("y = np.dot(a, b)", "dot"),
        ("y = np.dot(np.dot(a, b), c)", "dot"),
        ("y = np.dot(a, b) + m.sum()", ""),
        ("y = a + b", ""),
    ],
)
def test_the_call_of_a_line(line: str, call: str) -> None:
    assert call_in(line) == call


def test_where_a_rank_stands_that_is_in_no_collective() -> None:
    def stands(*stack: list[Any], **first: Any) -> str:
        return otherwise({**process(), "first": {"stacks": [list(stack)], **first}})

    find = ["<frozen importlib._bootstrap>", 1, "_find_and_load"]
    assert stands(find, TRAIN) == "import"
    assert stands(TRAIN) == "train_step()"
    assert stands([*TRAIN[:2], "<module>"]) == "the main program"
    assert stands([*TRAIN, "time.sleep(5)"]) == "sleep()"
    assert stands(TRAIN, waits="hrtimer_nanosleep") == "sleep()"
    library = ["/env/lib/python3.11/site-packages/numpy/linalg.py", 9, "solve"]
    assert stands(library, TRAIN, waits="hrtimer_nanosleep") == "solve()"
    assert stands(["/usr/lib/python3.11/queue.py", 1, "get"], library, TRAIN) == "solve()"
    assert stands([*TRAIN, "x = np.dot(a, b)"]) == "dot in train_step()"
    assert stands([*library, "x = a.dot(b)"], TRAIN) == "solve()", "the line of a library tells nothing"
    assert otherwise({"first": {"waits": "pipe_read"}}) == "reading a pipe"
    assert otherwise({"first": {"state": "R"}}) == "running (state R)"
    assert otherwise({"first": {"state": "S", "call": "futex", "waits": "x"}}) == "waiting in futex (state S)"
    assert otherwise({"first": {}}) == "waiting in the kernel (state ?)"


@in_one_test(
    "call, state, then, wakes, moves",
    [
        ("readv", "D", "D", 3, True),
        ("", "D", "R", 40, True),
        ("fsync", "D", "D", 2, False),
        ("", "D", "D", 0, False),
        ("read", "S", "S", 3, True),  # of a pipe in which data come
        ("read", "S", "S", 2, False),
        ("recvmsg", "S", "S", 9, False),
    ],
)
def test_a_rank_that_the_kernel_serves_moves(
    call: str, state: str, then: str, wakes: int, moves: bool
) -> None:
    """Reading for minutes by one line, as a checkpoint is read, is no hang; with a stack or without one."""
    look: dict[str, Any] = {
        "state": state,
        "waits": "x",
        "call": call,
        "path": "/f",
        "ticks": 5,
        "switches": 7,
    }
    after = {"state": then, "switches": 7 + wakes}
    assert moved(looked({**look, "stacks": [[TRAIN]]}, **after)) is moves
    assert moved(looked(look, **after)) is moves


def test_an_import_that_is_deeper_than_a_stack_is_one() -> None:
    """As of torch's modules: the innermost hundred calls hold no line of the program."""
    library = ["/env/lib/python3.11/site-packages/torch/_ops.py", 9, "<module>"]
    find = ["<frozen importlib._bootstrap>", 1176, "_find_and_load"]
    place = place_of({**process(), "first": {"state": "R", "stacks": [[library, find, library, find]]}})
    assert (place["what"], place["at"]) == ("import", "")
    alone = place_of({**process(), "first": {"state": "R", "stacks": [[library]]}})
    assert (alone["what"], alone["at"]) == ("the main program", "_ops.py:9")
    lazy = place_of({**process(), "first": {"state": "R", "stacks": [[library, find, library, TRAIN]]}})
    assert (lazy["what"], lazy["at"]) == ("the main program", "train.py:88")


def test_a_rank_moves_where_any_of_its_marks_does() -> None:
    look: dict[str, Any] = {"state": "S", "waits": "x", "call": "", "path": "", "ticks": 5}
    assert moved({**process(), "first": look}) is None, "one look only"
    assert moved(looked(look)) is False
    assert moved(looked(look, ticks=6)) is None
    mark = {**look, "collective": [3, "allreduce", True]}
    assert moved(looked(mark)) is False
    assert moved(looked(mark, collective=[4, "allreduce", True])) is True
    stack = {**look, "stacks": [[TRAIN]]}
    assert moved(looked(stack)) is False
    assert moved(looked(stack, stacks=[[[*TRAIN[:1], 89, TRAIN[2]]]])) is True
    recorded = looked(stack, recorder={"0": [[8, "all_reduce", "started"]]})
    assert moved({**recorded, "recorder": {"0": [[7, "all_reduce", "started"]]}}) is True
    assert moved({**recorded, "recorder": {"0": [[8, "all_reduce", "started"]]}}) is False


def test_a_rank_at_the_same_place_is_woken_by_three_turns_or_a_tenth_of_a_second() -> None:
    sleeps = {"state": "S", "call": "clock_nanosleep", "switches": 10, "ticks": 5, "stacks": [[TRAIN]]}
    assert gained(looked(sleeps, switches=14, ticks=9)) == (4, 4)
    assert woken(looked(sleeps, switches=12)) is False
    assert woken(looked(sleeps, switches=13)) is True
    assert woken(looked({**sleeps, "call": "read"}, switches=13)) is False
    runs = {**sleeps, "state": "R", "call": ""}
    assert woken(looked(runs, ticks=14)) is False
    assert woken(looked(runs, ticks=15)) is True
    waits = {**sleeps, "stacks": [[TORCH, TRAIN]]}
    assert woken(looked(waits, switches=12)) is False
    assert woken(looked(waits, switches=13)) is None, "it looks for its message, or moves"
    assert woken(looked(waits, ticks=8)) is None
    assert woken(looked({**waits, "call": "futex"}, switches=13)) is True


def report(rank: int, **more: Any) -> dict[str, Any]:
    facts = {"rank": rank, "node": "n1", "gpu": None, "what": "load()", "collective": False, "number": None}
    return {**facts, "path": "", "at": "", "workers": [], "suspect": False, "moved": False, **more}


def test_words_for_a_place_and_for_ranks() -> None:
    assert words_of(report(0)) == "in load()"
    assert words_of(report(0, what="import", at="a.py:3")) == "in import (a.py:3)"
    assert words_of(report(0, what="allreduce", collective=True, number=0)) == "in allreduce #0"
    assert words_of(report(0, what="open()", path="/x", at="a.py:3")) == "in open() of /x (a.py:3)"
    assert words_of(report(0, what="running (state R)")) == "running (state R)"
    two = [{"pid": 7, **report(0)}, {"pid": 8, **report(0)}]
    assert words_of(report(0, workers=two)) == "in load(), its process 7 in load()"
    assert names_of([report(3, gpu="2")]) == "rank 3 (n1, GPU 2)"
    assert names_of([report(rank) for rank in range(2)]) == "ranks 0 (n1), 1 (n1)"
    eight = ", ".join(f"{rank} (n1)" for rank in range(8))
    assert names_of([report(rank) for rank in range(8)]) == f"ranks {eight}"
    assert names_of([report(rank) for rank in range(10)]) == f"ranks {eight} and 2 more"


def test_times_are_said_in_their_largest_units() -> None:
    assert [span(seconds) for seconds in (0, 119, 120, 3599, 7199, 7200)] == [
        "0 s", "119 s", "2 min", "59 min", "119 min", "2 h",
    ]  # fmt: skip


def test_six_calls_are_shown_and_of_the_rest_the_programs_own() -> None:
    stack = [{"file": f"/env/lib/python3.11/x{at}.py"} for at in range(8)] + [{"file": "/home/me/a.py"}]
    assert shown_frames(stack) == [*stack[:6], stack[8]]


def sentence(*sizes: int, **more: Any) -> str:
    ranks = iter(range(100))
    groups = [[report(next(ranks), what=f"f{at}()") for _ in range(size)] for at, size in enumerate(sizes)]
    asked: dict[str, Any] = {
        "kind": "behind",
        "missing": [],
        "ranks": sum(sizes),
        "idle_s": None,
        "notes": [],
    }
    return roll_call.sentence(groups, **{**asked, **more})


def test_the_largest_group_is_counted_and_small_ones_named() -> None:
    assert sentence(3, 1) == "3 of 4 in f0(); rank 3 (n1) in f1()"
    assert sentence(9, 9).startswith("9 of 18 in f0(); 9 of 18 in f1()")
    assert sentence(9, 8).startswith("9 of 17 in f0(); ranks 9 (n1), 10 (n1), ")
    assert sentence(*[1] * 8).count(";") == 7
    assert sentence(*[1] * 10).endswith("; 2 more places")
    assert sentence(2, missing=[5]).endswith("; rank 5 without a process")
    many = sentence(2, missing=list(range(10)), notes=["a note"], idle_s=60)
    assert many.endswith("ranks 0, 1, 2, 3, 4, 5, 6, 7, ... without a process; no output since 60 s; a note")
    assert sentence(2, missing=list(range(8))).endswith("6, 7 without a process")
    assert sentence(missing=[0]) == "no rank of the job can be seen on its nodes"


def test_a_suspect_is_named_also_where_it_is_alone() -> None:
    for count, said in ((2, "ranks 0 (n1), 1 (n1) in load()"), (3, "3 of 3 in load()")):
        group = [report(rank, suspect=True) for rank in range(count)]
        assert roll_call.sentence([group], "behind", [], count, None, []) == said
    moving = [report(rank, moved=True) for rank in range(4)]
    assert roll_call.sentence([moving], "slow", [], 4, None, []) == "4 of 4 in load(), moving"
    assert "moving" not in roll_call.sentence([moving], "moving", [], 4, None, []).partition(";")[0]


def test_the_job_gets_the_roll_call_in_its_folder_and_in_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = {"state": "S", "stacks": [[TRAIN]], "ticks": 1, "by": "faulthandler"}
    one = {**process(7, OMPI_COMM_WORLD_RANK="0"), "first": look, "second": look}
    answer = f"{MARK}n1 0/1 " + json.dumps({"processes": [one]})
    monkeypatch.setattr(sys, "argv", ["-c", str(tmp_path), "2", "1", "600"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    roll_call.main()
    said = "1 of 2 in train_step() (train.py:88); rank 1 without a process; no output since 10 min"
    assert capsys.readouterr().out.startswith(
        f"hpclaunch: stacks: {said}\nhpclaunch: stacks:   a rank that has"
    )
    short = json.loads((tmp_path / "hang").read_text())
    assert (short["finding"], short["kind"], short["suspects"]) == (said, "missing", [])
    assert json.loads((tmp_path / "stacks.json").read_text())["ranks"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hang", "stacks.json"]
