"""Where ranks stand, and which ranks keep the rest waiting: from answers of nodes. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpclaunch.observe.job_stacks import stacks_document, watched
from hpclaunch.remote.look import MARK
from hpclaunch.remote.rank_stands import frames_of, newest, spied
from hpclaunch.remote.roll_call import (
    OVER,
    collective_in,
    differing,
    first_difference,
    nodes_in,
    roll_call,
    text_lines,
)
from tests.in_one_test import in_one_test

TRAIN = ["/home/me/train.py", 88, "train_step"]
IN_TORCH = ["/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 2810, "all_reduce"]
LOAD = ["/home/me/dataset.py", 31, "load"]


def process(
    rank: int, stack: list[list[Any]] | None = None, pid: int | None = None, **first: Any
) -> dict[str, Any]:
    """A rank's process as ``rank_stands.py`` has it; the second look shows the same as the first."""
    look = {"state": "S", "ticks": 5, "waits": "", "call": "", "path": "", "collective": None, **first}
    if stack is not None:
        look |= {"stacks": [stack], "by": "faulthandler"}
    variables = {"OMPI_COMM_WORLD_RANK": str(rank), "CUDA_VISIBLE_DEVICES": str(rank % 4)}
    return {
        "pid": pid or 1000 + rank,
        "parent": 1,
        "program": ["python", "train.py"],
        "variables": variables,
        "files": [],
        "first": look,
        "second": dict(look),
        "recorder": None,
    }


def called(processes: list[dict[str, Any]], ranks: int | None = None, **more: Any) -> dict[str, Any]:
    """The roll call of ranks on nodes of four, checked against its schema."""
    nodes: dict[str, list[dict[str, Any]]] = {}
    for one in processes:
        host = f"n{int(one['variables'].get('OMPI_COMM_WORLD_RANK', 0)) // 4 + 1}"
        nodes.setdefault(host, []).append(one)
    wanted = more.get("nodes", len(nodes))
    said = more.get("stderr", {})
    count, idle_s = ranks or len(processes), more.get("idle_s")
    found = roll_call(list(nodes.items()), count, wanted, idle_s, lambda rank: said.get(rank, ""))
    stacks_document("job", json.loads(json.dumps(found)))
    return found


def allreduce(rank: int) -> dict[str, Any]:
    return process(rank, [IN_TORCH, TRAIN])


RAISED = """Traceback (most recent call last):
  File "/home/me/mc.py", line 13, in <module>
    main()
    ~~~~^^
ValueError: negative temperature
"""


def over(rank: int) -> dict[str, Any]:
    """A rank whose Python is ending: no stack any more; MPI looks for its message all the time."""
    one = process(rank, None, state="R", over=True)
    return {**one, "second": {**one["first"], "state": "S", "call": "clock_nanosleep", "ticks": 90}}


def test_a_rank_whose_program_has_ended_is_not_called_slow() -> None:
    chained = f"{RAISED}\nThe above exception was the direct cause of the following exception:\n\n"
    chained += 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nmod.Own\n'
    for said, words in ((RAISED, "ValueError: negative temperature"), (chained, "mod.Own")):
        found = called([allreduce(0), over(1), allreduce(2)], stderr={1: said, 0: RAISED})
        assert (found["kind"], found["suspects"]) == ("over", [1])
        rank = f"rank 1 (n1, GPU 1) raised {words}, and {OVER}"
        assert found["finding"] == f"2 of 3 in allreduce (train.py:88); {rank}"
        assert "python -m mpi4py" in found["remedy"]
        watch = watched([found, found])
        assert (watch["kind"], watch["suspects"]) == ("over", [1])
        assert f"stuck: rank 1 (n1, GPU 1), now raised {words}, and waits" in watch["finding"]


@in_one_test("said", ["", "lr = 0.1\n", f"{RAISED}the step is repeated\n", RAISED[:40]])
def test_an_exception_that_did_not_end_the_rank_is_not_named(said: str) -> None:
    found = called([allreduce(0), over(1), allreduce(2)], stderr={1: said})
    assert found["finding"].endswith(f"rank 1 (n1, GPU 1) {OVER}")


def test_the_exception_of_a_rank_without_a_process_is_named() -> None:
    found = called([allreduce(0), allreduce(2)], 3, stderr={1: RAISED})
    assert found["kind"] == "missing"
    assert "rank 1 without a process; rank 1 raised ValueError: negative temperature" in found["finding"]


@pytest.mark.timeout(10)
def test_a_line_of_many_blanks_behind_an_exception_takes_no_time() -> None:
    found = called([allreduce(0), allreduce(2)], 3, stderr={1: f"{RAISED.rstrip()}{' ' * 300_000}\nmore\n"})
    assert "raised" not in found["finding"]


def test_of_compiled_ranks_all_are_listed_and_gdb_is_named() -> None:
    compiled = [{**process(rank, None, state="R"), "program": ["./ring"]} for rank in range(3)]
    found = called(compiled)
    assert "gdb -p PID -batch -ex bt" in found["finding"]
    assert [line[:6] for line in text_lines(found) if "pid " in line] == ["rank 0", "rank 1", "rank 2"]
    assert "gdb" not in called([allreduce(0), compiled[1]])["finding"]
    assert "gdb" not in called([process(0, None), process(1, None)])["finding"]


def test_ranks_that_all_end_accuse_none() -> None:
    assert called([over(0), over(1)])["suspects"] == []


def test_processes_without_a_rank_are_listed_but_not_what_the_script_waits_by() -> None:
    """With a watchdog each look of ``hpclaunch stacks`` would list its ``sleep``."""
    strange = {**process(0), "pid": 9, "variables": {}, "program": ["./solver", "-x"]}
    waits = {**process(0), "pid": 8, "variables": {}, "program": ["sleep", "3"]}
    found = called([allreduce(0), allreduce(1), strange, waits], 2)
    assert [one["program"][0] for one in found["other_processes"]] == ["./solver"]


def test_ranks_whose_collectives_go_on_are_not_accused() -> None:
    """Both looks find rank 0 at the same sleep(), rank 1 in the same allreduce; the numbers grow."""
    stack = ["/home/me/slow.py", 5, "<module>"]

    def seen(number: int) -> dict[str, list[list[Any]]]:
        return {"0": [[number, "gloo:all_reduce", "completed"]]}

    looped = process(0, [stack])
    waits = process(
        1, [["/venv/lib/python3.11/site-packages/torch/distributed/x.py", 9, "all_reduce"], stack]
    )
    stuck = called([looped, waits])
    assert (stuck["kind"], stuck["suspects"]) == ("behind", [0])
    for one, last in ((looped, 240), (waits, 241)):
        one["recorder"] = seen(147)
        one["second"]["recorder"] = seen(last)
    found = called([looped, waits])
    assert (found["kind"], found["suspects"]) == ("moving", [])
    assert "they are not stuck" in found["finding"]


def test_ranks_that_are_woken_at_the_same_place_are_not_accused() -> None:
    """Without a flight recorder: twenty allreduces, then a sleep of a second, and again."""
    loops = process(0, [["/home/me/slow.py", 5, "<module>"]], call="clock_nanosleep", switches=100)
    waits = process(1, [IN_TORCH, TRAIN], call="futex", switches=100)
    polls = process(1, [IN_TORCH, TRAIN], call="clock_nanosleep", switches=100)
    assert called([loops, waits])["suspects"] == [0]
    loops["second"]["switches"] = 140
    assert called([loops, waits])["kind"] == "slow", "the other one was not woken: it waits for rank 0"
    waits["second"]["switches"] = 112
    assert (called([loops, waits])["kind"], called([loops, waits])["suspects"]) == ("moving", [])
    polls["second"]["switches"] = 3000
    assert called([loops, polls])["kind"] == "moving"
    computes = process(0, [["/home/me/slow.py", 9, "evaluate"]], state="R")
    assert called([computes, waits])["suspects"] == [0]
    computes["second"]["ticks"] += 40
    assert (called([computes, polls])["kind"], called([computes, polls])["suspects"]) == ("moving", [])
    waits["second"]["switches"] = 100
    assert (called([computes, waits])["kind"], called([computes, waits])["suspects"]) == ("slow", [])
    loops["second"]["switches"] = 101
    assert (called([loops, polls])["kind"], called([loops, polls])["suspects"]) == ("behind", [0])


def test_several_looks_tell_stuck_from_slow() -> None:
    """One rank goes on, one never, two wait: the one that moves is not accused."""
    calls = []
    for step in range(3):
        slow, stuck = process(0, [["/home/me/train.py", step, "load"]]), process(1, [LOAD, TRAIN])
        calls.append(called([slow, stuck, allreduce(2), allreduce(3), allreduce(4)]))
    found = watched(calls)
    stacks_document("job", json.loads(json.dumps(found)))
    assert [one["progress"] for one in found["by_rank"]] == ["slow", "stuck", "waits", "waits", "waits"]
    assert found["suspects"] == [1]
    assert found["finding"].startswith(
        "3 looks; stuck: rank 1 (n1, GPU 1), now in load() (dataset.py:31); slow: "
    )
    healthy = watched([called([process(0, [["/home/me/t.py", step, "f"]]), allreduce(1)]) for step in (1, 2)])
    assert (healthy["suspects"], healthy["kind"]) == ([], "slow"), "as of one look"
    assert "it moves" in healthy["remedy"]
    fine = watched([called([process(0, [["/home/me/t.py", step, "f"]])]) for step in (1, 2)])
    assert (fine["suspects"], fine["kind"], fine["remedy"]) == ([], "moving", None)
    assert "stuck" not in healthy["finding"]


def test_the_kind_of_several_looks_is_that_of_the_stuck_rank() -> None:
    """Of three ranks two move at each look, so each look alone says that the ranks move."""
    calls = []
    for step in range(3):
        ranks = [process(rank, [["/home/me/train.py", step, "load"]]) for rank in range(3)]
        for one in ranks:
            one["second"] = {**one["first"], "stacks": [[["/home/me/train.py", step + 50, "load"]]]}
        ranks[1] = process(1, [LOAD, TRAIN], call="openat", path="/scratch/x")
        calls.append(called(ranks))
    assert [call["kind"] for call in calls] == ["moving"] * 3
    found = watched(calls)
    assert (found["kind"], found["suspects"]) == ("blocked", [1])
    assert "look at that file" in found["remedy"]
    for call in calls:
        call["by_rank"][1]["state"] = "T"
    assert watched(calls)["kind"] == "stopped"


def test_several_looks_at_a_mismatch_keep_its_ranks() -> None:
    ranks = [allreduce(rank) for rank in range(4)]
    ranks[2] = process(2, [["/env/lib/python3.11/site-packages/torch/distributed/c.py", 1, "barrier"], TRAIN])
    found = watched([called(ranks), called(ranks)])
    assert (found["kind"], found["suspects"]) == ("mismatch", [2])
    assert {one["progress"] for one in found["by_rank"]} == {"waits"}


LOADER = ["/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1275, "_try_get_data"]
FORKED = ["/usr/lib/python3.11/multiprocessing/process.py", 314, "_bootstrap"]
FETCH = ["/env/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", 54, "fetch"]


def started(rank: int, pid: int, parent: int, stack: list[list[Any]] | None, *words: str) -> dict[str, Any]:
    """A process that a rank has started."""
    return {**process(rank, stack, pid), "parent": parent, "program": list(words) or ["python", "train.py"]}


def test_the_line_of_a_process_that_loads_data_is_named() -> None:
    """Of the two one waits for work, in code that it has from its parent by a fork."""
    waits = process(1, [LOADER, TRAIN], 50)
    idle = started(1, 51, 50, [["/usr/lib/python3.11/multiprocessing/queues.py", 9, "get"], FORKED, TRAIN])
    item = ["/home/me/data.py", 7, "__getitem__", "time.sleep(600)"]
    works = started(1, 52, 50, [item, FETCH, FORKED, TRAIN])
    found = called([allreduce(0), waits, idle, works, allreduce(2)], 3)
    assert (found["kind"], found["suspects"]) == ("behind", [1])
    assert "(train.py:88), its process 52 in sleep() (data.py:7)" in found["finding"]
    text = "\n".join(text_lines(found))
    assert "    /home/me/data.py:7 in __getitem__: time.sleep(600)" in text
    assert "  its process 52 in sleep() (data.py:7):" in text
    moves = {**works, "second": {**works["second"], "ticks": 300}, "first": {**works["first"], "state": "R"}}
    moves["second"]["state"] = "R"
    found = called([allreduce(0), waits, idle, moves, allreduce(2)], 3)
    assert (found["kind"], found["suspects"]) == ("slow", [])


def test_the_command_that_a_rank_waits_for_is_named() -> None:
    run = ["/usr/lib/python3.11/subprocess.py", 1201, "communicate"]
    waits = process(0, [run, ["/usr/lib/python3.11/subprocess.py", 548, "run"], TRAIN], 50)
    shell, copy = started(0, 51, 50, None, "/bin/sh", "-c", "x"), started(0, 52, 51, None, "rsync", "a", "b")
    other = started(0, 53, 1, None, "sleep", "9")
    found = called([waits, other, shell, copy, allreduce(1)], 2)
    assert "rank 0 (n1, GPU 0) in run() (train.py:88), its process 52 runs rsync a b" in found["finding"]
    assert (found["kind"], found["suspects"]) == ("behind", [0])
    computes = process(0, [TRAIN], 50)
    assert called([computes, copy, allreduce(1)], 2)["by_rank"][0]["workers"] == [], "it waits for none"


@in_one_test(
    "line, said",
    [
        ("data = world.recv(source=left)", "recv in exchange()"),
        ("print(round(world.recv(source=left).mean()))", "recv in exchange()"),
        ("y = np.dot(a, b)", "dot in exchange()"),
        ("y = np.dot(a, b) + other.sum()", "exchange()"),
        ("with second:", "exchange()"),
        ("", "exchange()"),
    ],
)
def test_a_call_in_c_is_named_by_the_line(line: str, said: str) -> None:
    stuck = process(1, [["/home/me/prog.py", 19, "exchange", line], TRAIN])
    found = called([allreduce(0), stuck])
    assert found["by_rank"][1]["what"] == said
    assert f"rank 1 (n1, GPU 1) in {said} (prog.py:19)" in found["finding"]
    if line:
        assert f"    /home/me/prog.py:19 in exchange: {line}" in list(text_lines(found))


def test_a_receive_that_looks_for_its_message_all_the_time_does_not_move() -> None:
    """As Open MPI does; by its name alone the object is no communicator. One that computes there moves."""
    reduces = process(0, [["/home/me/prog.py", 9, "main", "world_comm.Allreduce(a, b)"]], state="R")
    for line, expected in (("world.recv(source=0)", [1]), ("matrix.solve(a)", [])):
        polls = process(1, [["/home/me/prog.py", 19, "main", line]], state="R")
        for one in (reduces, polls):
            one["second"]["ticks"] = one["first"]["ticks"] + 250
        assert called([reduces, polls])["suspects"] == expected


def test_a_wait_for_a_gpu_keeps_a_core_busy_and_is_no_sign_that_a_rank_moves() -> None:
    """As recorded on an H200 whose kernel never ended (tests/data/on_gpu)."""
    torch = [
        "/env/site-packages/torch/cuda/__init__.py",
        1162,
        "synchronize",
        "return torch._C._cuda_synchronize()",
    ]
    for stack in ([torch, TRAIN], [["/home/me/train.py", 90, "step", "total += loss.item()"]]):
        waits = process(1, stack, state="R")
        waits["second"]["ticks"] = waits["first"]["ticks"] + 400
        alone = called([allreduce(0) | {"first": waits["first"], "second": waits["second"]}], 1)
        assert (alone["kind"], alone["suspects"]) == ("unclear", [])
        assert "whether its kernel ends or not" in alone["finding"]
        assert called([allreduce(0), waits, allreduce(2)])["suspects"] == [1]


def test_a_receive_is_not_accused_where_another_rank_moves() -> None:
    receives = process(0, [["/home/me/prog.py", 19, "main", "world.recv(source=2)"]], state="R")
    receives["second"]["ticks"] = receives["first"]["ticks"] + 250
    moves = process(2, [["/home/me/prog.py", 30, "solve"]])
    moves["second"] = {**moves["first"], "stacks": [[["/home/me/prog.py", 33, "solve"]]]}
    found = called([receives, allreduce(1), moves])
    assert (found["kind"], found["suspects"]) == ("slow", [])


def test_a_rank_that_waits_for_a_thread_of_the_program_that_computes_moves() -> None:
    waits = process(
        1, [["/usr/lib/python3.11/concurrent/futures/_base.py", 451, "result"], TRAIN], call="futex"
    )
    idle = [["/usr/lib/python3.11/threading.py", 324, "wait"]]
    computes = [["/env/lib/python3.11/site-packages/numpy/linalg.py", 9, "solve"], LOAD]
    waits["second"]["ticks"] = waits["first"]["ticks"] + 40
    for thread, expected in ((idle, [1]), (computes, [])):
        waits["first"]["stacks"][1:] = [thread]
        assert called([allreduce(0), waits, allreduce(2)])["suspects"] == expected
    waits["first"]["state"], waits["first"]["stacks"][1:] = "R", [idle]
    assert called([allreduce(0), waits, allreduce(2)])["suspects"] == [], "it gave out the next piece"
    waits["first"]["state"], waits["first"]["stacks"][1:] = "S", [computes]
    waits["second"]["ticks"] = waits["first"]["ticks"] + 2
    assert called([allreduce(0), waits, allreduce(2)])["suspects"] == [1], "a deadlock of two threads"


def test_another_thread_of_a_deadlock_is_shown() -> None:
    first, second = ["/home/me/a.py", 5, "main", "with b:"], ["/home/me/a.py", 9, "other", "with a:"]
    idle = ["/usr/lib/python3.11/threading.py", 324, "wait"]
    stuck = process(0, [first])
    ours = [
        "/home/me/state/jobs/1/files/startup/rank_recorder.py",
        64,
        "serve",
        "while os.read(requests, 1):",
    ]
    other = [second, ["/usr/lib/python3.11/threading.py", 982, "run"]]
    stuck["first"]["stacks"] = [[first], other, [idle], [ours]]
    text = list(text_lines(called([stuck, allreduce(1)])))
    at = text.index("  another thread of it:")
    assert text[at - 1 : at + 2][::2] == [
        "    /home/me/a.py:5 in main: with b:",
        "    /home/me/a.py:9 in other: with a:",
    ]
    assert "\n".join(text).count("another thread") == 1


def test_without_any_stack_the_answer_says_how_to_get_one() -> None:
    assert "'python train.py' as the command has them" in called([process(0), process(1)])["finding"]
    assert "-stacks" not in called([allreduce(0), allreduce(1)])["finding"]


@in_one_test(
    "name, kind",
    [
        ("monitored_barrier", "barrier"),
        ("_all_gather_base", "allgather"),
        ("_reduce_scatter_base", "reducescatter"),
        ("_engine_run_backward", "backward"),
    ],
)
def test_torchs_inner_names_of_collectives(name: str, kind: str) -> None:
    assert collective_in(name) == kind


def test_code_outside_of_functions_is_the_main_program() -> None:
    script = ["/home/me/train.py", 3, "<module>"]
    found = called([process(rank, [script], state="R") for rank in range(3)])
    assert found["finding"].startswith("3 of 3 in the main program (train.py:3)")


def test_the_rank_in_open_is_named_with_node_gpu_and_file() -> None:
    late = process(6, [LOAD, TRAIN], call="openat", path="/scratch/part-6")
    found = called([*map(allreduce, range(6)), late, *map(allreduce, range(7, 16))], idle_s=545)
    assert found["finding"] == (
        "15 of 16 in allreduce (train.py:88); rank 6 (n2, GPU 2) in open() of /scratch/part-6"
        " (dataset.py:31); no output since 9 min"
    )
    assert (found["kind"], found["suspects"]) == ("blocked", [6])
    text = list(text_lines(found))
    assert text[2] == "rank 6 on n2, GPU 2: pid 1006, state S, openat(): python train.py"
    assert text[3] == "    /home/me/dataset.py:31 in load"


def test_a_stopped_rank_and_one_in_the_kernel() -> None:
    stopped, nfs = process(0, state="T"), process(1, state="D", waits="rpc_wait_bit_killable")
    found = called([stopped, nfs, allreduce(2), allreduce(3)])
    assert (found["kind"], found["suspects"]) == ("stopped", [0, 1])
    assert "rank 0 (n1, GPU 0) stopped by a signal (state T)" in found["finding"]
    assert "(waiting for NFS, state D)" in found["finding"]
    assert called([nfs, allreduce(2)], 2)["kind"] == "missing"
    assert called([process(0, state="D"), allreduce(1)])["kind"] == "disk"


def test_of_ranks_that_read_much_none_is_accused_of_a_disk_that_does_not_answer() -> None:
    ranks = [process(rank, [LOAD, TRAIN], state="D", switches=5) for rank in range(4)]
    silent = called(ranks)
    assert (silent["kind"], silent["suspects"]) == ("disk", [0, 1, 2, 3])
    assert "--watch 60 tells" in silent["remedy"]
    for one in ranks[:3]:
        one["second"]["switches"] = 900
    found = called(ranks)
    assert (found["kind"], found["suspects"]) == ("moving", [])
    ranks[0]["second"]["switches"] = ranks[1]["second"]["switches"] = 5
    assert called(ranks)["suspects"] == [0, 1, 3]


def test_a_rank_of_which_no_look_can_tell_whether_it_moves_is_not_called_stuck() -> None:
    """A driver of Ray waits in get() for tasks that may run for hours, or never end."""
    get = ["/env/lib/python3.11/site-packages/ray/_private/worker.py", 1007, "get_objects"]
    driver, actor = process(0, [get, TRAIN], call="futex"), process(1, [LOAD])
    driver["second"]["switches"] = 99
    call = called([driver, actor])
    assert (call["kind"], call["suspects"]) == ("unclear", [])
    watch = watched([call, call])
    assert [one["progress"] for one in watch["by_rank"]] == ["unknown", "stuck"]
    assert "stuck: rank 1 (n1, GPU 1), now in load() (dataset.py:31)" in watch["finding"]


def test_a_rank_that_is_at_one_place_while_output_comes_is_not_called_stuck() -> None:
    """Steps of seven seconds: both looks of three seconds find the rank in the same sleep."""
    ranks = [process(0, [[*LOAD, "time.sleep(7)"]], call="clock_nanosleep"), allreduce(1)]
    calls = [called(ranks, idle_s=idle_s) for idle_s in (5, 1, 4)]
    watch = watched(calls)
    assert [one["progress"] for one in watch["by_rank"]] == ["slow", "waits"]
    assert (watch["kind"], watch["suspects"]) == ("slow", [])
    assert watch["finding"].endswith("; output came meanwhile")
    assert [line[:6] for line in text_lines(watch) if "pid " in line] == ["rank 0"], "the slow one"
    for one in ranks[1:]:
        one["first"]["collective"] = one["second"]["collective"] = [41, "allreduce", True]
    beats = watched([called(ranks, idle_s=idle_s) for idle_s in (2, 1, 2)])
    assert [one["progress"] for one in beats["by_rank"]] == ["stuck", "waits"], (
        "a thread prints, none gets on"
    )
    ranks[1]["first"].pop("collective"), ranks[1]["second"].pop("collective")
    silent = watched([called(ranks, idle_s=idle_s) for idle_s in (5, 8, 11)])
    assert [one["progress"] for one in silent["by_rank"]] == ["stuck", "waits"]
    ended = watched([called([over(0), allreduce(1)], idle_s=idle_s) for idle_s in (5, 1)])
    assert ended["suspects"] == [0], "its program has ended, whatever the other ranks print"


def test_several_looks_name_the_places_of_ranks_that_get_on_alike() -> None:
    """As where one of four ranks waits in another collective than the other three."""
    elsewhere = process(1, [IN_TORCH, ["/home/me/train.py", 99, "finish"]])
    call = called([allreduce(0), elsewhere, allreduce(2), allreduce(3)])
    found = watched([call, call])["finding"]
    assert found.startswith(
        "2 looks; waits: ranks 0 (n1, GPU 0), 2 (n1, GPU 2), 3 (n1, GPU 3), now in allreduce (train.py:88)"
        ", and rank 1 (n1, GPU 1), now in allreduce (train.py:99)"
    )
    many = called([process(rank, [["/home/me/train.py", rank, "f"]]) for rank in range(5)])
    assert watched([many, many])["finding"].endswith("(train.py:2), and 2 more places")


def test_several_looks_name_the_ranks_without_a_process() -> None:
    call = called([process(0, [LOAD]), allreduce(1)], 4)
    assert (call["kind"], call["missing"]) == ("missing", [2, 3])
    assert watched([call, call])["finding"].endswith("; ranks 2, 3 without a process")


def test_collectives_that_do_not_match_are_named_by_their_numbers() -> None:
    ranks = [process(rank, [TRAIN]) for rank in range(4)]
    for one in ranks:
        one["first"]["collective"] = one["second"]["collective"] = [17, "allreduce", True]
    ranks[3]["first"]["collective"] = ranks[3]["second"]["collective"] = [16, "allreduce", True]
    found = called(ranks)
    assert (found["kind"], found["suspects"]) == ("mismatch", [3])
    assert "3 of 4 in allreduce #17 (train.py:88); rank 3 (n1, GPU 3) in allreduce #16" in found["finding"]


def test_the_flight_recorder_shows_the_first_collective_that_differs() -> None:
    ranks = [process(rank, [TRAIN]) for rank in range(4)]
    for one in ranks:
        one["recorder"] = {"0": [[16, "nccl:all_reduce", "completed"], [17, "all_reduce", "started"]]}
    ranks[3]["recorder"] = {"0": [[16, "nccl:all_reduce", "completed"], [17, "all_gather", "started"]]}
    found = called(ranks)
    assert (found["kind"], found["suspects"]) == ("mismatch", [3])
    assert "3 of 4 in allreduce #17 (train.py:88); rank 3 (n1, GPU 3) in allgather #17" in found["finding"]


def test_ranks_that_move_are_slow_and_not_stuck() -> None:
    ranks = [process(rank, [IN_TORCH, TRAIN]) for rank in range(4)]
    for one in ranks:
        one["second"] = {**one["first"], "stacks": [[LOAD]]}
    found = called(ranks)
    assert (found["kind"], found["suspects"]) == ("moving", [])
    assert found["finding"].endswith("the ranks move: they are not stuck")
    ranks[1:] = map(allreduce, range(1, 4))
    ranks[0] = process(0, [LOAD])
    ranks[0]["second"] = {**ranks[0]["first"], "stacks": [[TRAIN]]}
    found = called(ranks)
    assert (found["kind"], found["suspects"]) == ("slow", [])
    assert "/home/me/dataset.py:31 in load" in "".join(text_lines(found)), "its stack is shown"
    assert "rank 0 (n1, GPU 0) in load() (dataset.py:31), moving" in found["finding"]


def test_nobody_is_named_where_no_rank_differs() -> None:
    found = called([allreduce(rank) for rank in range(8)])
    assert (found["kind"], found["suspects"], found["remedy"]) == ("alike", [], None)
    assert found["finding"].startswith("8 of 8 in allreduce (train.py:88); no rank differs")
    computing = [process(rank, state="R") for rank in range(3)]
    assert (called(computing)["kind"], called(computing)["suspects"]) == ("unclear", [])


def test_what_is_not_seen_is_said() -> None:
    found = called([allreduce(0), allreduce(1)], ranks=3)
    assert (found["kind"], found["missing"]) == ("missing", [2])
    assert "rank 2 without a process" in found["finding"]
    assert "1 of 2 nodes have answered" in called([allreduce(0)], ranks=2, nodes=2)["finding"]
    nothing = called([], ranks=2, nodes=1)
    assert (nothing["kind"], nothing["by_rank"]) == ("none", [])
    assert list(text_lines(nothing))


def test_the_program_of_a_rank_is_its_process() -> None:
    shell, child = process(0, pid=50), process(0, [TRAIN], pid=51)
    shell["program"], child["parent"] = ["/bin/bash", "-c", "..."], 50
    worker = process(0, [LOAD], pid=52)
    worker["parent"] = 51
    (rank,) = called([worker, child, shell])["by_rank"][:1]
    assert (rank["pid"], rank["processes"]) == (51, 3)


@in_one_test(
    "name, kind",
    [
        ("all_reduce_coalesced", "allreduce"),
        ("allreduce_", "allreduce"),
        ("Iallreduce", "allreduce"),
        ("ProcessGroup.allreduce", "allreduce"),
        ("all_gather_into_tensor", "allgather"),
        ("reduce_scatter_tensor", "reducescatter"),
        ("bcast", "broadcast"),
        ("Barrier", "barrier"),
        ("reduce", "reduce"),
        ("synchronize", "synchronize"),
        ("reduced_loss", None),
        ("forward", None),
    ],
)
def test_functions_are_named_after_collectives(name: str, kind: str | None) -> None:
    assert collective_in(name) == kind


def test_answers_that_are_cut_are_left_out() -> None:
    text = json.dumps({"host": "n1", "processes": []})
    lines = [f"{MARK}n1 0/2 {text[:9]}", f"{MARK}n2 0/1 {text}", "srun: error", f"{MARK}n3 0/1 {{"]
    assert nodes_in("\n".join(lines)) == [("n2", [])]


def test_the_text_of_faulthandler() -> None:
    text = """\
Thread 0x00007f1 (most recent call first):
  File "/x/loader thread.py", line 3 in work
  File "/usr/lib/python3.11/threading.py", line 975 in run

Current thread 0x00007f2 [python] (most recent call first):
  File "<string>", line ??? in inner
  File "/x/train.py", line 88 in <module>
"""
    main, thread = frames_of(text)
    assert main == [["<string>", 0, "inner"], ["/x/train.py", 88, "<module>"]]
    assert thread[0] == ["/x/loader thread.py", 3, "work"]


def test_the_text_of_py_spy() -> None:
    text = """\
Process 7: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 8 (active): "loader"
    work (/x y/loader.py:3)
Thread 7 (idle): "MainThread"
    Loop.allreduce (/x y/train.py:88)
    <module> (/x y/train.py:99)
"""
    assert spied(text) == [
        [["/x y/train.py", 88, "Loop.allreduce"], ["/x y/train.py", 99, "<module>"]],
        [["/x y/loader.py", 3, "work"]],
    ]


def test_the_newest_collectives_of_a_dump() -> None:
    entries = [
        {
            "process_group": ["0", "default_pg"],
            "collective_seq_id": number,
            "profiling_name": "gloo:all_reduce",
        }
        | {"state": "scheduled", "retired": number < 3, "is_p2p": False}
        for number in range(1, 4)
    ]
    found = newest(json.dumps({"entries": entries}), most=2)
    assert found == {"0:default_pg": [[2, "all_reduce", "completed"], [3, "all_reduce", "scheduled"]]}
    assert newest("not JSON") is None


def waiting(rank: int, what: str, *called: str) -> dict[str, Any]:
    """A rank in a collective, and the names of those that its flight recorder has, from number 1 on."""
    numbered = [(number, name, 0) for number, name in enumerate(called, 1)]
    return {"rank": rank, "what": what, "number": None, "at": "a.py:1", "collectives": {"0": numbered}}


@in_one_test(
    "whats, odd",
    [
        (["allreduce"] * 4, []),
        (["allreduce", "barrier"], [0, 1]),
        (["allreduce", "barrier", "allreduce"], [1]),
        (["allreduce", "barrier", "allreduce", "barrier"], []),
        (["allreduce", "barrier", "broadcast", "allreduce"], [1, 2]),
    ],
)
def test_ranks_in_another_collective_than_most(whats: list[str], odd: list[int]) -> None:
    reports = [waiting(rank, what) for rank, what in enumerate(whats)]
    assert [one["rank"] for one in differing(reports)] == odd


@in_one_test(
    "names, odd",
    [
        (["ab", "ab", "ab"], []),
        (["ab", "cb", "ab"], [1]),
        (["ab", "cb"], []),
        (["ab", "cb", "ab", "cb"], []),
        (["ab", "ac", "ad", "ab"], []),
        (["ab", "ac", "ab", "ab"], [1]),
    ],
)
def test_the_collective_that_most_ranks_called_tells_the_odd_ones(names: list[str], odd: list[int]) -> None:
    reports = [waiting(rank, "barrier", *called) for rank, called in enumerate(names)]
    assert [one["rank"] for one in first_difference(reports)] == odd
