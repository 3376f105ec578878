"""jobs, status, logs, wait, cancel and completion as whole processes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.job.store import Store
from hpclaunch.observe import job_stacks
from tests.in_process import hpclaunch_here
from tests.testbed.kit import new_record, submit

pytestmark = pytest.mark.slow

HPCLAUNCH = str(Path(sys.executable).parent / "hpclaunch")


def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HPCLAUNCH, *words], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_no_jobs_yet() -> None:
    assert (call("jobs").stdout, json.loads(call("jobs", "--json").stdout)) == ("", [])
    for command in ("status", "logs", "wait"):
        done = call(command)
        assert done.returncode == 3
        assert done.stderr == "hpclaunch: there is no job yet\n"


def test_the_list_refreshes_and_names_each_job(tmp_path: Path) -> None:
    store = Store()
    good, bad = (submit(store, "local", body, tmp_path) for body in ("true", "exit 7"))
    for record in (good, bad):
        call("wait", record.id)
    listed = json.loads(call("jobs", "--json").stdout)
    assert {job["id"]: (job["state"], job["exit_code"]) for job in listed} == {
        good.id: ("done", 0),
        bad.id: ("failed", 7),
    }
    lines = call("jobs").stdout.splitlines()
    assert lines[0].split() == ["ID", "JOBID", "NAME", "SITE", "STATE", "EXIT", "NODES", "x", "RANKS", "AGE"]
    assert lines[1].split()[1] == good.scheduler_id
    assert len(lines) == 3
    assert len(call("jobs", "-n", "1").stdout.splitlines()) == 2
    assert call("jobs", "-n", "0").returncode == 3


def test_a_damaged_record_is_reported_and_the_other_jobs_are_listed(tmp_path: Path) -> None:
    store = Store()
    good, bad = new_record(store, "local", tmp_path), new_record(store, "local", tmp_path)
    (store.folder(bad.id) / "record.json").write_text("{")
    done = call("jobs", "--json")
    assert done.returncode == 0
    assert [job["id"] for job in json.loads(done.stdout)] == [good.id]
    assert f"{bad.id}/record.json: damaged job record" in done.stderr


def test_wait_exits_with_the_status_of_the_job(tmp_path: Path) -> None:
    body = 'echo "{\\"a\\": [1]}" > "$HPCLAUNCH_RESULT_FILE"'
    record = submit(Store(), "local", body, tmp_path)
    done = call("wait", "--json")
    expected = {"id": record.id, "state": "done", "exit_code": 0, "result": {"a": [1]}}
    assert done.returncode == 0
    assert expected.items() <= json.loads(done.stdout).items()
    record = submit(Store(), "local", "exit 3", tmp_path)
    done = call("wait", record.id, "--json")
    expected = {"id": record.id, "state": "failed", "exit_code": 3, "result": None}
    assert done.returncode == 1
    assert expected.items() <= json.loads(done.stdout).items()
    assert "the script ended with exit status 3" in done.stderr


def test_status_prints_text_and_json(tmp_path: Path) -> None:
    record = submit(Store(), "local", "exit 3", tmp_path)
    call("wait", record.id)
    text = call("status", record.id[:-1]).stdout
    assert "state    failed, exit code 3" in text
    assert record.folder in text
    facts = json.loads(call("status", "--json").stdout)
    assert (facts["id"], facts["state"], facts["exit_code"]) == (record.id, "failed", 3)
    assert facts["ended"]


def test_logs_print_follow_and_stop_when_the_reader_leaves(tmp_path: Path) -> None:
    record = submit(Store(), "local", "seq 300000", tmp_path)
    assert call("logs", "-f").stdout.split()[-1] == "300000"
    assert len(call("logs", record.id).stdout.splitlines()) == 300000
    head = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {HPCLAUNCH} logs | head -n 1"], capture_output=True, check=False
    )
    assert (head.stdout, head.stderr, head.returncode) == (b"1\n", b"", 0)


def test_logs_of_a_job_without_output(tmp_path: Path) -> None:
    new_record(Store(), "local", tmp_path)
    done = call("logs")
    assert done.returncode == 3
    assert "out.log: no output yet" in done.stderr


def test_cancel_ends_the_job_and_needs_its_name(tmp_path: Path) -> None:
    record = submit(Store(), "local", "sleep 1000", tmp_path)
    assert call("cancel").returncode == 2
    assert call("cancel", "last").stdout == f"{record.id} cancelled\n"
    assert call("cancel", "last").stdout == f"{record.id} was cancelled already\n"
    assert call("wait").returncode == 1


def test_cancel_takes_several_jobs_and_all_of_them(tmp_path: Path) -> None:
    store = Store()
    jobs = [submit(store, "local", "sleep 1000", tmp_path).id for _ in range(4)]
    elsewhere = new_record(store, "local", tmp_path)
    store.save(replace(elsewhere, state="running", scheduler_id="1:1", machine=None))
    done = call("cancel", jobs[0], elsewhere.id, jobs[1], jobs[0])
    assert done.stdout == f"{jobs[0]} cancelled\n{jobs[1]} cancelled\n"
    assert done.returncode == 4
    assert "cannot be cancelled from here" in done.stderr
    facts = json.loads(call("cancel", jobs[0], elsewhere.id, "--json").stdout)
    assert [(job["state"], job["done"]) for job in facts] == [("cancelled", True), ("running", False)]
    assert facts[0]["message"] == f"{jobs[0]} was cancelled already"
    for words in ((), ("last", "--all"), ("last", "--site", "local")):
        assert call("cancel", *words).returncode == 2
    assert call("cancel", "--all", "--site", "olivia").stdout == ""
    assert call("cancel", "--all", "--site", "elsewhere").returncode == 3
    store.forget(elsewhere.id)
    done = call("cancel", "--all", "--name", "t?y")
    assert (done.returncode, done.stdout) == (0, f"{jobs[2]} cancelled\n{jobs[3]} cancelled\n")


def test_jobs_are_found_by_what_people_remember_and_listed_by_it(tmp_path: Path) -> None:
    store = Store()
    old, new, other = (
        new_record(store, "slurm", tmp_path, name=name) for name in ("lr-sweep", "lr-sweep", "eval")
    )
    store.save(replace(old, created="2026-01-02T03:04:05+00:00", state="failed", scheduler_id="4711;lab"))
    store.save(replace(other, site="lumi-g", state="done", scheduler_id="4712"))

    def listed(*words: str) -> list[str]:
        return [job["id"] for job in json.loads(call("jobs", "--json", *words).stdout)]

    for text, found in (
        ("lr-sweep", new),
        ("4711", old),
        ("4712", other),
        (old.id[-6:], old),
        ("eval", other),
    ):
        assert json.loads(call("status", "--json", text).stdout)["id"] == found.id
    assert listed("--name", "lr-*") == [old.id, new.id]
    assert listed("--name", "eval", "--name", "lr-*", "-n", "2") == [new.id, other.id]
    assert listed("--site", "lumi-g") == [other.id]
    assert listed("--state", "failed", "--state", "done") == [old.id, other.id]
    assert listed("--since", "1h") == [new.id, other.id]
    assert listed("--since", "2026-01-01", "-n", "1") == [other.id]
    assert call("jobs", "--since", "yesterday").returncode == 3
    assert call("jobs", "--site", "olivia").stderr == "no job fits\n"
    assert "did you mean 'lumi-g'?" in call("jobs", "--site", "lumig").stderr


def test_status_shows_the_last_known_state_where_the_scheduler_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    record = new_record(store, "slurm", tmp_path)
    store.save(replace(record, state="running", scheduler_id="1", host="nobody@host.invalid"))
    done = call("status", "--json")
    assert (done.returncode, json.loads(done.stdout)["state"]) == (0, "running")
    assert "is shown as it was last known" in done.stderr
    store.save(replace(record, state="running", scheduler_id="1"))
    done = call("status", PATH=str(tmp_path))
    assert done.returncode == 0
    assert "squeue: no such program" in done.stderr


def test_wait_gives_up_after_its_timeout_and_the_job_goes_on(tmp_path: Path) -> None:
    record = submit(Store(), "local", "sleep 1000", tmp_path)
    start = time.monotonic()
    done = call("wait", "--timeout", "0.5", "--json")
    assert time.monotonic() - start < 100
    assert (done.returncode, json.loads(done.stdout)["state"]) == (124, "running")
    assert done.stderr == f"hpclaunch: job {record.id} has not ended after 0.5 s\n"
    assert call("cancel", record.id).returncode == 0
    assert (call("wait", "--timeout", "60").returncode, call("wait", "--timeout", "-1").returncode) == (1, 3)


def test_status_of_a_running_job_shows_its_nodes_and_binding_so_far(tmp_path: Path) -> None:
    record = submit(Store(), "local", f"while [ ! -e {tmp_path}/end ]; do sleep 0.1; done", tmp_path)
    Store().save(replace(record, plan={"binding": {"ranks": []}}, tasks=2))
    assert "nodes " not in call("status").stdout.replace("1 node, ", "")
    (Path(record.folder) / "binding").mkdir(exist_ok=True)
    words = "host=n1 local_rank=0 cpus=0 planned=0 mems=0 gpus=none bus= gpu_numa= verdict=ok"
    (Path(record.folder) / "binding" / "n1").write_text(f"hpclaunch-binding rank=0 {words}\n")
    text = call("status").stdout
    assert re.search(r"^nodes +n1$", text, re.MULTILINE)
    assert re.search(r"^binding +1 of 2 ranks reported", text, re.MULTILINE)
    assert json.loads(call("status", "--json").stdout)["node_names"] == ["n1"]
    (tmp_path / "end").touch()
    assert call("wait").returncode == 0


def test_stacks_of_a_job_that_ends_meanwhile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = submit(Store(), "local", f"while [ ! -e {tmp_path}/end ]; do sleep 0.1; done", tmp_path)

    def ends(*_: object) -> None:
        (tmp_path / "end").touch()
        call("wait")
        raise RefusedError("the nodes of the job have not answered")

    monkeypatch.setattr(job_stacks, "stacks_of", ends)
    answer = hpclaunch_here("stacks", record.id)
    assert answer.returncode == 3
    assert "is done" in answer.stderr


def test_status_is_shown_again_until_the_job_has_ended(tmp_path: Path) -> None:
    submit(Store(), "local", f"while [ ! -e {tmp_path}/end ]; do sleep 0.1; done", tmp_path)
    watching = subprocess.Popen([HPCLAUNCH, "status", "--watch", "0.2"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    states = (line for line in watching.stdout if line.startswith("state"))
    assert [next(states).split()[1] for _ in range(2)] == ["running", "running"]
    (tmp_path / "end").touch()
    assert [line.split()[1] for line in states][-1] == "done,"
    assert watching.wait() == 0
    assert call("status", "--watch", "1", "--json").returncode == 2


def test_logs_print_the_last_lines(tmp_path: Path) -> None:
    body = f"seq 50000; while [ ! -e {tmp_path}/end ]; do sleep 0.1; done; echo more; echo end"
    record = submit(Store(), "local", body, tmp_path)
    follower = subprocess.Popen([HPCLAUNCH, "logs", "-f", "--tail", "2"], stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert [follower.stdout.readline() for _ in range(2)] == ["49999\n", "50000\n"]
    (tmp_path / "end").touch()
    assert follower.stdout.read() == "more\nend\n"
    assert follower.wait() == 0
    assert call("logs", "--tail", "3").stdout == "50000\nmore\nend\n"
    assert call("logs", "--tail", "70000").stdout.count("\n") == 50002
    assert call("logs", "--tail", "0").returncode == 3
    document = json.loads(call("logs", "--tail", "1", "--json", record.id).stdout)
    assert (document["id"], document["rank"], document["text"]) == (record.id, None, "end\n")
    assert call("logs", "--json", "-f").returncode == 2


def test_the_last_lines_of_a_rank(tmp_path: Path) -> None:
    store = Store()
    record = submit(store, "local", "for i in 1 2 3; do echo 0: a$i; echo 1: b$i; done", tmp_path)
    call("wait", record.id)
    store.save(replace(store.load(record.id), tasks=2))
    assert call("logs", "--rank", "1", "--tail", "2").stdout == "b2\nb3\n"


def test_forget_removes_ended_jobs_only(tmp_path: Path) -> None:
    store = Store()
    old, new = (submit(store, "local", "exit 3", tmp_path) for _ in range(2))
    runs = submit(store, "local", "sleep 1000", tmp_path)
    for record in (old, new):
        assert call("wait", record.id).returncode == 1
    store.save(replace(store.load(old.id), created="2026-01-02T03:04:05+00:00"))
    refused = call("forget", runs.id)
    assert refused.returncode == 3
    assert f"{runs.id} is running, so it is not forgotten" in refused.stderr
    assert call("forget", "--all", "--before", "1d").stdout == f"{old.id} forgotten\n"
    assert call("forget", "--all").stdout == f"{new.id} forgotten\n"
    assert store.ids() == [runs.id]
    facts = json.loads(call("forget", runs.id, "--json").stdout)
    assert [(job["id"], job["state"], job["done"]) for job in facts] == [(runs.id, "running", False)]
    assert call("cancel", "--all").returncode == 0
    assert call("forget", "last").returncode == 0
    assert os.listdir(store.jobs) == []
    assert call("forget").returncode == 2


def test_leftovers_of_killed_processes_are_removed(tmp_path: Path) -> None:
    store = Store()
    record = new_record(store, "local", tmp_path)
    for name, age_s in (("old", 7200), ("young", 0)):
        folder = store.jobs / f".{record.id}.{name}"
        folder.mkdir()
        (folder / "record.json").write_text("{}")
        os.utime(folder, (time.time() - age_s,) * 2)
    second = new_record(store, "local", tmp_path)
    assert sorted(os.listdir(store.jobs)) == sorted([f".{record.id}.young", record.id, second.id])


def test_control_characters_of_a_log_do_not_reach_a_terminal(tmp_path: Path) -> None:
    """They are shown; colours and progress bars are left, and a file gets what the job wrote."""
    said = b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\rbar\x9b \xc2\x9b \xe2\x80\xae\xff\x00end\n"
    record = submit(Store(), "local", "true", tmp_path)
    call("wait")
    (Path(record.folder) / "out.log").write_bytes(said)
    piped = subprocess.run([HPCLAUNCH, "logs"], capture_output=True, check=True).stdout
    assert piped == said
    for words in (["logs"], ["logs", "-f"]):
        shown = on_terminal([HPCLAUNCH, *words])
        assert b"\\x1b]0;title\\x07\\x1b[2J\x1b[31mred\x1b[0m\rbar" in shown
        assert b"\\x9b" in shown
        assert b"\\u202e" in shown
        assert b"\\x00end" in shown


def on_terminal(words: list[str]) -> bytes:
    """Run a command on a terminal and return what it writes there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(words[0], words)
    shown = b""
    try:
        while data := os.read(terminal, 4096):
            shown += data
    except OSError:  # the terminal is closed with its last process
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown


def test_an_unknown_job_is_bad_input() -> None:
    for command in ("status", "logs", "wait", "cancel"):
        done = call(command, "nothing-like-it")
        assert done.returncode == 3
        assert "no job 'nothing-like-it'" in done.stderr


def test_ctrl_c_ends_the_waiting_and_not_the_job(tmp_path: Path) -> None:
    record = submit(Store(), "local", "echo started; sleep 1000", tmp_path)
    waiter = subprocess.Popen([HPCLAUNCH, "logs", "-f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == b"started\n"
    waiter.send_signal(signal.SIGINT)
    _, said = waiter.communicate()
    assert waiter.returncode == 130
    assert f"job {record.id} goes on: hpclaunch logs -f {record.id} follows it" in said.decode()
    assert json.loads(call("status", "--json").stdout)["state"] == "running"
    assert call("cancel", record.id).returncode == 0


def test_an_unwritable_state_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    words = ("submit", "--site", "local", "--tasks", "1", "--", "true")
    done = call(*words, XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.returncode == 3
    assert str(tmp_path / "state") in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = call("completion", shell)
    assert done.returncode == 0
    assert "_HPCLAUNCH_COMPLETE" in done.stdout


def test_bash_completes_at_a_tab(tmp_path: Path) -> None:
    record = new_record(Store(), "local", tmp_path)
    shown = type_into_bash("hpclaunch su\t", "submit ", "--si\t", "--site ")
    assert "hpclaunch submit --site " in shown
    for command in ("submit", "topology", "software plan", "check", "advise io", "jobs"):
        assert "--site perlmutter" in type_into_bash(f"hpclaunch {command} --site perl\t", "mutter ")
    assert f"status {record.id} " in type_into_bash(f"hpclaunch status {record.id[:-1]}\t", f"{record.id} ")


def type_into_bash(*keys_and_answers: str) -> str:
    """Type into an interactive bash on a terminal, each time awaiting an answer; return all it shows."""
    environment = {**os.environ, "PATH": f"{Path(HPCLAUNCH).parent}:{os.environ['PATH']}", "TERM": "dumb"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
    start = 'PS1=; eval "$(hpclaunch completion bash)"; echo rea""dy\n'
    shown = ""
    for keys, answer in zip((start, *keys_and_answers[::2]), ("ready", *keys_and_answers[1::2]), strict=True):
        os.write(terminal, keys.encode())
        at = len(shown)
        while answer not in shown[at:] and select.select([terminal], [], [], 20)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    os.close(terminal)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return shown
