"""Texts, files and answers that were made to do harm: none runs, raises an error or writes a raw escape."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpclaunch.errors import BadInputError
from hpclaunch.job.job_script import dry_run
from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.settings import JobSettings
from hpclaunch.site.load_profile import load_site
from tests.attacks.lab import ON_SLURM, Answer, Lab
from tests.job.hostile import (
    MARK,
    Bash,
    has,
    hostile_texts,
    job_documents,
    profile_documents,
    slurm_documents,
    with_text,
)
from tests.job.test_hostile_text import JOBS, LINES, PROFILE_FIELDS, REQUEST_FIELDS, in_yaml, to_yaml

# What a rank saw, for the file that the request names.
_SAY = (
    "import json, os, sys; "
    "print(json.dumps([sys.argv[2:], os.environ['TEXT'], os.getcwd()]), file=open(sys.argv[1], 'w'))"
)
_BATCH = 25


def request_texts(lab: Lab, trials: int) -> None:
    """Any text of a request on a real Slurm runs nothing; arguments, variables and folder arrive as given."""
    documents = [*job_documents("generic-slurm"), *slurm_documents("generic-slurm")]
    texts = [*filter(in_yaml, hostile_texts(lab.canary))]
    expected: dict[Path, Any] = {}
    _needed_files(lab)
    for number in range(trials):
        text, file = lab.chance.choice(texts), lab.home / f"job{number}.yaml"
        if number % 8 == 0:
            accepted = _readback(lab, text, number, expected)
        else:
            path = lab.chance.choice(REQUEST_FIELDS)
            fitting = [document for document in documents if has(document, path)]
            given = f"{text}:dest" if path == ("stage", 0) else text
            file.write_text(to_yaml(with_text(lab.chance.choice(fitting), path, given)))
            accepted = lab.here("submit", "--file", file, "--no-test-only", "--no-wait", "--json")
        lab.trial(accepted.problems(f"submit of {text!r}"), hit=accepted.code == 0)
        if number % _BATCH == _BATCH - 1 or number == trials - 1:
            _until_idle(lab)
            wrong = [
                f"{file}: {_read(file)!r} for {want!r}"
                for file, want in expected.items()
                if _read(file) != want
            ]
            expected.clear()
            lab.trials -= 1  # this looks at the jobs of trials that are counted
            lab.trial(wrong, hit=False)


def _needed_files(lab: Lab) -> None:
    """Make what the requests name, so that they are not refused because it is missing."""
    (lab.home / MARK / "bin").mkdir(parents=True)
    (lab.home / MARK / "bin" / "activate").touch()
    (lab.home / "ds.json").write_text("{}")
    program = lab.home / ".local" / "bin" / "program7"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


def _readback(lab: Lab, text: str, number: int, expected: dict[Path, Any]) -> Answer:
    """Submit a program that tells its words, a variable and its folder, which all hold the text."""
    out, file = lab.scratch / f"said{number}.json", lab.home / f"job{number}.yaml"
    folder = lab.scratch / "work" / (text.replace("/", "_").replace("\0", "")[:60].strip() or "plain")
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _SAY, str(out), text]
    document = {
        "site": "generic-slurm",
        "command": command,
        "env": {"TEXT": text},
        "time": "5m",
        "mpi": "none",
    }
    file.write_text(to_yaml(document))
    environment = lab.environment()
    words = (sys.executable, "-m", "hpclaunch", "submit", "--file", str(file), "--no-test-only", "--no-wait")
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0:
        expected[out] = [[text], text, str(folder)]
    return Answer(done.returncode, done.stdout, done.stderr, "")


def _read(file: Path) -> Any:
    return json.loads(file.read_text()) if file.exists() else None


def _until_idle(lab: Lab) -> None:
    """Wait until only jobs are left that wait for what never comes, and cancel those."""
    while any(
        not line.startswith("PENDING ") or line.split()[1] in ("(Resources)", "(Priority)", "(None)")
        for line in lab.slurm.run("squeue", "-h", "-o", "%T %R").stdout.splitlines()
    ):
        time.sleep(0.2)
    lab.slurm.run("scancel", "--user", str(os.getuid()))


def profile_leaves(lab: Lab, trials: int) -> None:
    """Every text of a profile, in scripts that bash runs: no other command runs, no directive is added."""
    bash = Bash(lab.scratch / "bash")
    texts = [*filter(in_yaml, hostile_texts(bash.canary))]
    jobs = []
    for number, job in enumerate(JOBS):
        file = lab.scratch / f"job{number}.yaml"
        file.write_text(to_yaml({"site": "here", "account": MARK, **job}))
        jobs.append(read_layers(JobSettings(), file))
    fields = [path for path in PROFILE_FIELDS if path not in LINES]  # code, by their definition
    for _ in range(trials):
        path, text, layers = lab.chance.choice(fields), lab.chance.choice(texts), lab.chance.choice(jobs)
        document = next(each for each in profile_documents() if has(each, path))
        usual = _script(lab, document, layers)
        script = _script(lab, with_text(document, path, text), layers)
        problems: list[str] = []
        found: Counter[str] = Counter()
        if script is not None:
            try:
                found = bash.observe(script, text if path == ("software", "python") else None)
            except AssertionError as error:
                problems = [f"{path} {text!r}: {error}"] if bash.canary.exists() else []
            added = _directives(found) - _directives(bash.observe(usual)) if usual else 0
            if added > 0 and path[0] not in ("directives", "account", "queues", "node", "fabric"):
                problems.append(f"{path} {text!r}: {added} words of directives more")
            shutil.rmtree(bash.canary, ignore_errors=True)
        lab.trial(problems, hit=script is not None)


def _script(lab: Lab, document: dict[str, Any], layers: Any) -> str | None:
    """Return the script for a job at a site; None where profile or job is refused."""
    site = lab.scratch / "config" / "hpclaunch" / "sites" / "here.yaml"
    site.parent.mkdir(parents=True, exist_ok=True)
    site.write_text(to_yaml(document))
    os.environ["XDG_CONFIG_HOME"] = str(lab.scratch / "config")
    try:
        load_site(str(site))
        return dry_run(prepare(layers, SubmitMode(here=False)))[1]
    except BadInputError:
        return None


def _directives(found: Counter[str]) -> int:
    return sum(count for word, count in found.items() if word.startswith("directive"))


_LOOKS = (
    *("jobs", "jobs --json", "status JOB", "status JOB --json", "logs JOB", "verify JOB", "report JOB"),
    *("report JOB --json", "stacks JOB", "fetch JOB --to OUT", "timeline JOB", "resubmit JOB --dry-run"),
    *("cancel JOB", "forget JOB"),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        10**30,
        1e308,
        "",
        "x" * 100_000,
        "\0",
        "\x1b]0;x\x07\x1b[2J",
        "../../../../etc",
        "--help",
    ),
    *([], {}, [[[[]]]], {"a": {"b": None}}, "NaN", "9" * 5000, "2026-99-99", "/dev/zero", "\u202e", "$(id)"),
)


def damaged_records(lab: Lab, trials: int) -> None:
    """A record that was damaged, and every command on it."""
    lab.here("submit", *ON_SLURM, "--name", "whole", "--wait", "--", "true")
    store = lab.state / "hpclaunch" / "jobs"
    (folder,) = store.iterdir()
    whole = (folder / "record.json").read_bytes()
    kept = lab.scratch / "kept"
    shutil.copytree(folder, kept)
    for number in range(trials):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        (folder / "record.json").write_bytes(_damaged(lab, whole))
        problems = []
        for look in _LOOKS:
            words = look.replace("JOB", folder.name).replace("OUT", str(lab.scratch / f"out{number}")).split()
            problems += lab.here(*words).problems(look)
        lab.trial(problems)


def _damaged(lab: Lab, whole: bytes) -> bytes:
    how = lab.chance.choice(("bytes", "cut", "value", "value", "value", "key"))
    if how == "bytes":
        damaged = bytearray(whole)
        for _ in range(lab.chance.randint(1, 8)):
            damaged[lab.chance.randrange(len(damaged))] = lab.chance.randrange(256)
        return bytes(damaged)
    if how == "cut":
        return whole[: lab.chance.randrange(len(whole))]
    record = json.loads(whole)
    record["state"] = lab.chance.choice((record["state"], "running", "queued", "created"))
    places = [(record, key) for key in record]
    places += [(value, key) for value in record.values() if isinstance(value, dict) for key in value]
    # The folder decides what forget removes: a folder of the whole machine would be its owner's own wish.
    mapping, key = lab.chance.choice([place for place in places if place[1] not in ("folder", "host")])
    if how == "key":
        del mapping[key]
    else:
        mapping[key] = lab.chance.choice(_VALUES)
    return json.dumps(record).encode()


def lying_programs(lab: Lab, trials: int) -> None:
    """Rubbish with exit 0 from fakes of Slurm's commands is not believed, and no job is lost by it."""
    programs = lab.scratch / "bin"
    programs.mkdir()
    answer = lab.scratch / "answer"
    for name in ("sbatch", "squeue", "scontrol", "sacct"):
        (programs / name).write_text(
            f'#!/bin/sh\n# a fake {name}\ncat > /dev/null < /dev/null\ncat "{answer}"\n'
        )
        (programs / name).chmod(0o755)
    lies = {"PATH": f"{programs}:{os.environ['PATH']}"}
    touch = f"touch {lab.canary}"
    answers = [
        *(
            b"",
            b"\0",
            b"\xff\xfe" * 50,
            b"garbage\n",
            b"--help\n",
            b"-1\n",
            b"9" * 400,
            b"\x1b]0;x\x07\x1b[2J\n",
        ),
        *(
            f"$({touch})\n".encode(),
            f"1;{touch}\n".encode(),
            b"a|b|c|d|e|f|g|h\n" * 5,
            b"x" * 20_000_000,
            b"1\n2\n",
        ),
    ]
    job = lab.here("submit", *ON_SLURM, "--name", "real", "--no-wait", "--json", "--", "sleep", "600")
    assert job.code == 0, job
    number = json.loads(job.out)["id"]
    for trial in range(trials):
        text = answers[trial % len(answers)]
        answer.write_bytes(text)
        problems = []
        for words in (("status", number), ("jobs",), ("submit", *ON_SLURM, "--no-wait", "--", "true")):
            problems += lab.here(*words, more=lies).problems(f"{words[0]} with {text[:40]!r}")
        state = json.loads(lab.here("status", number, "--json").out)["state"]
        if state not in ("queued", "running"):
            problems.append(f"{state} after {text[:40]!r}")
        lab.trial(problems)
    lab.slurm.run("scancel", "--user", str(os.getuid()))


_ESCAPES = (
    *("\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\", "\x1b]52;c;ZXZpbA==\x07", "\x1b[2J\x1b[H"),
    *(
        "\x1bP1$r\x1b\\",
        "\x9b2J",
        "\x90x\x9c",
        "\x1bc",
        "\x1b[6n",
        "\x08\x08",
        "\x7f",
        "\u202e",
        "\x0e",
        "\x05",
    ),
)


def escapes_in_logs(lab: Lab, trials: int) -> None:
    """What a rank prints, shown on a terminal and, where hpclaunch tells of it, also in a file."""
    for _ in range(trials):
        text = "".join(lab.chance.choices(_ESCAPES, k=3))
        program = f"import sys; sys.stdout.buffer.write({text.encode()!r} + b'Error: x\\n'); sys.exit(3)"
        words = ("submit", *ON_SLURM, "--name", "says", "--wait", "--", sys.executable, "-c", program)
        problems = _on_a_terminal(lab, *words).problems(f"submit --wait of {text!r}")
        problems += _on_a_terminal(lab, "logs", "last").problems(f"logs of {text!r}")
        for look in ("status last", "status last --json", "jobs", "report last", "verify last", "wait last"):
            problems += lab.here(*look.split()).problems(f"{look} of {text!r}")
        lab.trial(problems)


def _on_a_terminal(lab: Lab, *words: str) -> Answer:
    command = shlex.join([sys.executable, "-m", "hpclaunch", *words])
    terminal = ["script", "--quiet", "--return", "--command", command, "/dev/null"]
    done = subprocess.run(terminal, env=lab.environment(), cwd=lab.home, capture_output=True, check=False)
    return Answer(done.returncode, done.stdout.decode(errors="backslashreplace"), "", "")


def _bombs() -> list[bytes]:
    bomb = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    return [
        *("\n".join(bomb).encode(), b"[" * 100_000, b"a: !!python/object/apply:os.system ['touch CANARY']\n"),
        *(b"site: " + b"x" * 50_000_000, b"".join(b"k%d: 1\n" % n for n in range(300_000)), b"site: a\0b\n"),
        *(b"a: &a {x: 1}\nb: {<<: [" + b"*a, " * 20_000 + b"*a]}\n", b"nodes: " + b"9" * 5_000 + b"\n"),
    ]


def yaml_bombs(lab: Lab, trials: int) -> None:
    """Job files and profiles that would take the memory or run code, read by a program that has 2 GB."""
    bombs = [bomb.replace(b"CANARY", str(lab.canary).encode()) for bomb in _bombs()]
    for number in range(trials):
        file = lab.home / "bomb.yaml"
        file.write_bytes(bombs[number // 2 % len(bombs)])
        words = ("submit", "--dry-run", "--file", file) if number % 2 else ("sites", "validate", file)
        command = ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", sys.executable, "-m", "hpclaunch"]
        done = subprocess.run(
            [*command, *map(str, words)], env=lab.environment(), capture_output=True, text=True
        )
        about = f"{words[0]} of bomb {number // 2 % len(bombs)}"
        lab.trial(Answer(done.returncode, done.stdout, done.stderr, "").problems(about, (1, 3)))


def planted_templates(lab: Lab, trials: int) -> None:
    """Templates and programs where hpclaunch is called, and in the user's configuration: none is read."""
    words = ("submit", "--site", "generic-slurm", "--dry-run", "--", "true")
    usual = lab.here(*words)
    plants: list[Callable[[], Path]] = [
        *(lambda: lab.home / "templates", lambda: lab.home / "hpclaunch" / "templates"),
        *(
            lambda: lab.home / ".config" / "hpclaunch" / "templates",
            lambda: lab.home / ".config" / "templates",
        ),
        lambda: lab.state / "hpclaunch" / "templates",
    ]
    for number in range(trials):
        folder = plants[number % len(plants)]()
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("slurm.sh.j2", "_job.sh.j2", "local.sh.j2"):
            (folder / name).write_text(f"#!/bin/bash\ntouch {lab.canary}\n# PLANTED\n")
        shown = lab.here(*words, more={"XDG_CONFIG_HOME": str(lab.home / ".config")})
        problems = shown.problems("submit --dry-run")
        if "PLANTED" in shown.out or shown.out != usual.out:
            problems.append(f"another script with {folder}")
        lab.trial(problems)
