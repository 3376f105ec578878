"""How often a wrong input gets a right answer, and how often a right one is refused.

    python -m benchmarks.wrong_inputs [--half open|kept] [--only PATTERN] [--show]

The cases are ``tests/data/wrong_inputs/*.yaml`` (README.md there: how one is written and judged). Each is run
in a folder of its own, commands in this process, the bundled training in a process of its own. A case is
misjudged when its exit status is not that of the contract, when a word that the answer needs is missing, or
when an input that is odd but right is refused. ``changed``: cases whose expectation was changed after a run.
``--show`` prints what was said in each misjudged case.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner

import hpclaunch
from hpclaunch.cli.main import program
from hpclaunch.errors import EXIT_BAD_INPUT
from hpclaunch.text_table import text_table

TEST_DATA = Path(__file__).parent.parent / "tests" / "data"
FOLDER = TEST_DATA / "wrong_inputs"
HALVES = ("open", "kept")
_SECONDS = 60
_KEYS = {"run", "python", "exit", "raises", "says", "never", "right", "files", "config", "env", "jobs", "raw"}
_KEYS |= {"literal", "short", "changed"}


class Case(NamedTuple):
    """One input, and what a right answer to it contains."""

    name: str
    given: Mapping[str, Any]

    @property
    def half(self) -> str:
        """``kept`` for the cases that repairs were not made by."""
        return HALVES[hashlib.sha256(self.name.encode()).digest()[-1] & 1]

    @property
    def right(self) -> bool:
        """Whether the input is odd but right."""
        return bool(self.given.get("right"))

    def words(self) -> list[str]:
        """The command line, without ``hpclaunch``."""
        first, *rest = shlex.split(self.given["run"])
        if self.given.get("raw"):
            rest = [word.replace("\\n", "\n") for word in rest]
        return [*shlex.split(self.given["short"].get(first, first)), *rest]


class Answer(NamedTuple):
    """What a case got: the exit status and both outputs."""

    exit: int
    out: str
    err: str


class Place(NamedTuple):
    """Folders that cases share: parsed profiles, and the records of two jobs."""

    cache: Path
    jobs: Path


def read_cases() -> list[Case]:
    """All cases, in the order of the files."""
    cases: list[Case] = []
    for file in sorted(FOLDER.glob("*.yaml")):
        document = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for name, given in document["cases"].items():
            if unknown := given.keys() - _KEYS:
                raise ValueError(f"{file.name}, {name}: unknown keys {sorted(unknown)}")
            cases.append(Case(name, given | {"short": document["short"]}))
    return cases


def make_place(folder: Path) -> Place:
    """Make the folders that cases share; two jobs of this machine run for it."""
    place = Place(folder / "cache", folder / "jobs")
    at_home = {"XDG_STATE_HOME": str(place.jobs), "XDG_CACHE_HOME": str(place.cache)}
    for name, command in (("first", "exit 0"), ("second", "echo no >&2; exit 7")):
        with _environment(at_home):
            words = ["submit", "--site", "local", "--tasks", "1", "--name", name, "--", "sh", "-c", command]
            CliRunner().invoke(program, words, prog_name="hpclaunch")
    return place


def run_case(case: Case, folder: Path, place: Place) -> Answer:
    """Run a case in a new folder."""
    _write_files(case, folder)
    home = folder / "home"
    variables = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "STATE", "DATA")}
    variables |= {"XDG_CACHE_HOME": str(place.cache), "XDG_CONFIG_DIRS": str(home / "xdg"), "HOME": str(home)}
    if case.given.get("jobs"):
        variables["XDG_STATE_HOME"] = str(place.jobs)
    variables |= {n: v.replace("{here}", str(folder)) for n, v in case.given.get("env", {}).items()}
    before = Path.cwd()
    os.chdir(folder)
    try:
        with _environment(variables), _at_most(_SECONDS):
            if "python" in case.given:
                return _run_python(case.given["python"])
            words = case.words()
            return _run_program(words) if words[0] == "python" else _run_command(words)
    finally:
        os.chdir(before)


def faults(case: Case, answer: Answer) -> list[str]:
    """What is wrong with an answer; empty: it is right."""
    if "Traceback (most recent call last)" in answer.err + answer.out:
        return ["traceback"]
    if "internal error" in answer.err:
        return ["internal fault"]
    if case.right:
        return [f"refused with exit status {answer.exit}"] if answer.exit else []
    expected = case.given.get("exit", EXIT_BAD_INPUT)
    found = []
    if answer.exit not in (expected if isinstance(expected, list) else [expected]):
        found.append(f"exit status {answer.exit}, not {expected}")
    said = answer.err if answer.exit > 1 else answer.out + answer.err
    text = " ".join(said.split()).casefold()
    for words in case.given["says"]:
        if not any(" ".join(word.split()).casefold() in text for word in _choices(words, case)):
            found.append(f"does not say {words!r}")
    found += [f"says {word!r}" for word in case.given.get("never", ()) if word in answer.out + answer.err]
    return found


def _choices(words: str | list[str], case: Case) -> list[str]:
    if isinstance(words, list) or case.given.get("literal"):
        return [str(word) for word in (words if isinstance(words, list) else [words])]
    return str(words).split("|")


def _write_files(case: Case, folder: Path) -> None:
    files = {"train.py": "import torch\n"} | case.given.get("files", {})
    if "config" in case.given:
        files["home/config/hpclaunch/config.yaml"] = case.given["config"]
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        given = content if isinstance(content, dict) else {"text": content}
        if given.get("folder"):
            path.mkdir(parents=True)
        elif "copy" in given:
            shutil.copy(TEST_DATA / given["copy"], path)
        else:
            path.write_bytes(bytes.fromhex(given["hex"]) if "hex" in given else given["text"].encode())
        if "mode" in given:
            path.chmod(int(given["mode"], 8))


def _run_command(words: Sequence[str]) -> Answer:
    answer = CliRunner().invoke(program, list(words), prog_name="hpclaunch")
    error = answer.stderr
    if answer.exception and not isinstance(answer.exception, SystemExit):
        error += "".join(traceback.format_exception(answer.exception))
    return Answer(answer.exit_code, answer.stdout, error)


def _run_program(words: Sequence[str]) -> Answer:
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, errors="replace")
    return Answer(done.returncode, done.stdout, done.stderr)


def _run_python(statement: str) -> Answer:
    """Run the statement; an exception that names a mistake counts as a refusal of bad input."""
    error = io.StringIO()
    try:
        with contextlib.redirect_stderr(error):
            exec(statement, {"hpclaunch": hpclaunch})  # a statement of the cases
    except (hpclaunch.errors.HpclaunchError, TypeError, AttributeError, ValueError) as refused:
        return Answer(EXIT_BAD_INPUT, "", f"{error.getvalue()}{refused}")
    return Answer(0, "", error.getvalue())


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _row(half: str, judged: Sequence[tuple[Case, list[str]]]) -> list[str]:
    own = [(case, found) for case, found in judged if case.half == half]
    wrong = [found for case, found in own if not case.right]
    decoys = [found for case, found in own if case.right]
    misjudged = sum(map(bool, wrong))
    kinds = [sum(found == [kind] for _, found in own) for kind in ("internal fault", "traceback")]
    share = f"{100 * misjudged / len(wrong):.1f}" if wrong else ""
    refused = sum(map(bool, decoys))
    changed = sum("changed" in case.given for case, _ in own)
    return [
        half,
        *map(str, (len(wrong), misjudged)),
        share,
        *map(str, (*kinds, len(decoys), refused, changed)),
    ]


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description="Answers to wrong inputs.")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    judged: list[tuple[Case, list[str]]] = []
    with tempfile.TemporaryDirectory() as root:
        place = make_place(Path(root))
        for number, case in enumerate(read_cases()):
            if case.half != (options.half or case.half) or not fnmatch.fnmatch(case.name, options.only):
                continue
            folder = Path(root, f"case{number}")
            folder.mkdir()
            answer = run_case(case, folder, place)
            judged.append((case, found := faults(case, answer)))
            if found and options.show:
                print(
                    f"-- {case.name}: {'; '.join(found)}", f"   {case.given.get('run')}", answer.err, sep="\n"
                )
                if answer.exit < 2:
                    print(answer.out[:2000])
    title = [
        "half",
        "wrong inputs",
        "misjudged",
        "%",
        "internal faults",
        "tracebacks",
        "decoys",
        "refused",
        "changed",
    ]
    halves = [options.half] if options.half else HALVES
    print(text_table([title, *(_row(half, judged) for half in halves)]))


if __name__ == "__main__":
    main()
