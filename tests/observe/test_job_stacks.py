"""How ``hpclaunch stacks`` gets to the nodes: commands and their answers, on a host that plays them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.job_script import STANDS, one_text
from hpclaunch.job.log_extract import rank_stderr
from hpclaunch.job.record import JobRecord
from hpclaunch.observe.job_stacks import stacks_left, stacks_of, stacks_over, watched
from hpclaunch.remote.look import MARK


class PlayedHost:
    """Answers commands by their first word, or by the first of ssh that names a node; notes them all."""

    name = "played"

    def __init__(self, **answers: str) -> None:
        self.answers, self.commands, self.files = answers, list[list[str]](), dict[str, bytes]()

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        self.commands.append(list(argv))
        words = argv[4:] if argv[0] == "timeout" else argv
        words = [word for word in words if word != "env" and not word.startswith("--unset=")]
        node = words[list(words).index("--") + 1] if words[0] == "ssh" else ""
        text = self.answers.get(node or words[0].replace("-", "_"), "")
        return CommandResult(exit_code=0 if text else 1, stdout=text, stderr="" if text else "no answer")

    def read_file(self, path: str) -> bytes | None:
        return self.files.get(path)


def answer(host: str, variables: Mapping[str, str], program: str = "python") -> str:
    first = {"state": "S", "ticks": 1, "waits": "", "call": "", "path": "", "collective": None}
    process = {"pid": 7, "parent": 1, "program": [program], "variables": dict(variables), "files": []}
    text = json.dumps({"host": host, "processes": [{**process, "first": first, "second": first}]})
    return f"{MARK}{host} 0/1 {text}\n"


def pmi(rank: int) -> dict[str, str]:
    return {"PMI_LOCAL_RANK": "0", "PMI_RANK": str(rank), "PMI_SIZE": "2"}


def record(scheduler: str, **more: Any) -> JobRecord:
    """A running job of two ranks on two nodes."""
    facts: dict[str, Any] = {"id": "j", "name": "n", "site": f"generic-{scheduler}", "state": "running"}
    facts |= {"scheduler": scheduler, "scheduler_id": "5", "folder": "/jobs/j", "workdir": "/"}
    facts |= {"created": "", "command": ("true",), "nodes": 2, "tasks": 2, "request": {}, "plan": {}}
    facts |= {"profile_digest": "", "versions": {}}
    return JobRecord(**{**facts, **more})


QSTAT = "Job Id: 5.s\n    job_state = R\n    exec_host = n1/0*4+n2/0*4\n"


def test_the_nodes_of_pbs_are_reached_by_ssh_and_one_may_be_silent() -> None:
    host = PlayedHost(qstat=QSTAT, n1=answer("n1", pmi(0)), sh="545\n")
    found = stacks_of(host, record("pbs", scheduler_id="5.s"))  # type: ignore[arg-type]
    assert (found["nodes_answered"], found["missing"], found["idle_s"]) == (1, [1], 545)
    assert "1 of 2 nodes have answered" in found["finding"]
    sent = [command for command in host.commands if "ssh" in command]
    assert [command[-2:] for command in sent] == [
        ["n1", "python3 -I -S -B - PBS_JOBID 5.s 50"],
        ["n2", "python3 -I -S -B - PBS_JOBID 5.s 50"],
    ]
    assert all(command[:4] == ["timeout", "-k", "5", "60"] for command in sent)


def test_the_nodes_of_an_allocation_are_known_to_its_shell() -> None:
    job = record("local", site="generic-slurm", scheduler_id="123:4")
    host = PlayedHost(
        squeue="77|RUNNING|2|None|77|n[1-2]\n", srun=answer("n1", pmi(0)) + answer("n2", pmi(1))
    )
    host.files["/proc/123/environ"] = b"A=1\0SLURM_JOB_ID=77\0"
    assert stacks_of(host, job)["nodes_answered"] == 2  # type: ignore[arg-type]
    asked = next(command for command in host.commands if "srun" in command)
    assert "--jobid=77" in asked
    assert asked[-3:] == ["HPCLAUNCH_JOB_ID", "j", "50"]
    host.files.clear()
    with pytest.raises(BadInputError, match="2 nodes of an allocation that is not known here"):
        stacks_of(host, job)  # type: ignore[arg-type]


def test_of_a_job_that_ends_while_it_is_watched_the_looks_before_are_told() -> None:
    class Ending(PlayedHost):
        def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
            if argv[0] == "squeue" and len([one for one in self.commands if one[0] == "squeue"]) == 2:
                self.answers["squeue"] = "\n"
            return super().run(argv, **options)

    host = Ending(squeue="5|RUNNING|2|None|5|n[1-2]\n", srun=answer("n1", pmi(0)) + answer("n2", pmi(1)))
    found = stacks_over(host, record("slurm"), None, 60)  # type: ignore[arg-type]
    assert found["finding"].startswith("2 looks; ")
    assert found["finding"].endswith("; then no answer: hpclaunch status tells whether the job has ended")
    with pytest.raises(BadInputError, match="it has ended"):
        stacks_over(host, record("slurm"), None, 60)  # type: ignore[arg-type]


def test_of_another_program_than_python_each_look_says_how_to_read_its_stack() -> None:
    answers = answer("n1", pmi(0), "./a.out") + answer("n2", pmi(1), "julia")
    host = PlayedHost(squeue="5|RUNNING|2|None|5|n[1-2]\n", srun=answers)
    said = "stacks are read of Python only: gdb -p PID -batch -ex bt shows another program's, on its node"
    look = stacks_of(host, record("slurm"))  # type: ignore[arg-type]
    assert said in look["finding"]
    assert said in watched([look, look])["finding"]


def test_where_a_rank_raised_is_read_over_the_border_of_its_two_files(tmp_path: Path) -> None:
    """``rank_stderr.sh`` begins a new file at some size, which may be in the middle of a traceback."""
    (tmp_path / "stderr").mkdir()
    (tmp_path / "stderr" / "0.before").write_text("Traceback (most recent call last):\n  File x, line 1\n")
    (tmp_path / "stderr" / "0").write_text("KeyError: 'a'\n")
    whole = rank_stderr(LocalHost(), str(tmp_path), 0)
    assert whole.startswith(b"Traceback")
    assert whole.endswith(b"KeyError: 'a'\n")
    assert rank_stderr(LocalHost(), str(tmp_path), 1) == b""


def test_no_answer_at_all_and_no_way() -> None:
    with pytest.raises(RefusedError, match="have not answered"):
        stacks_of(PlayedHost(qstat=QSTAT), record("pbs", scheduler_id="5.s"))  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="running jobs of LSF from outside is not known"):
        stacks_of(PlayedHost(), record("lsf"))  # type: ignore[arg-type]


def test_an_ended_job_without_a_roll_call() -> None:
    with pytest.raises(BadInputError, match="is done, so it has no ranks"):
        stacks_left(PlayedHost(), record("local", state="done"))  # type: ignore[arg-type]


def test_programs_of_several_files_are_one_text() -> None:
    text = one_text(STANDS)
    assert len(text.encode()) < 120_000  # one word of a command may have 128 KiB
    compile(text, "stands.py", "exec")
