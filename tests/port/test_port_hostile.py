"""Hostile text in a foreign script stays text: in the job file, the new script and its shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from hpclaunch.port.foreign_values import WORDS
from hpclaunch.port.port_script import port_script
from hpclaunch.site.load_profile import load_site
from tests.job.hostile import Bash, hostile_texts
from tests.port.fixture_scripts import check_report, rendered

HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n"


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    return Bash(tmp_path_factory.mktemp("bash"))


def texts(bash: Bash) -> list[str]:
    """Those that a script can hold as UTF-8 text."""
    return [
        text
        for text in hostile_texts(bash.canary)
        if text.isascii() or text.isprintable() or "\u2028" in text
    ]


def observed(bash: Bash, script: str, to: str) -> dict[str, str]:
    """What a ported script's program is called with, and its variables."""
    ported = port_script(script, None, load_site(to))
    check_report(script, ported)
    calls = bash.observe(rendered(ported)[1])
    (call,) = [words for words in calls if words.startswith(("call program7\0", "call apptainer\0"))]
    variables = dict(words[9:].partition("=")[::2] for words in calls if words.startswith("variable "))
    return {"call": call, **variables}


@pytest.mark.parametrize("to", ["generic-slurm", "generic-pbs"])
def test_words_and_variables_of_the_program_arrive_as_they_were(bash: Bash, to: str) -> None:
    wanted = [text for text in texts(bash) if "\0" not in text]
    lines = [f"export WORD{n}={shlex.quote(text)}" for n, text in enumerate(wanted)]
    words = " ".join(map(shlex.quote, wanted))
    seen = observed(bash, HEAD + "\n".join(lines) + f"\nsrun program7 {words} last\n", to)
    assert seen["call"].split("\0")[1:] == [*wanted, "last"]
    assert [seen[f"WORD{n}"] for n in range(len(wanted))] == wanted


DIRECTIVES = (
    *(
        "--job-name={}",
        "--account={}",
        "--partition={}",
        "--time={}",
        "--array={}",
        "--dependency=afterok:{}",
    ),
    *("--mail-type=END --mail-user={}", "--comment={}", "--export=ALL,NAME={}", "--constraint={}", "-N {}"),
    *("--container-image={}", "--mem={}", "--signal={}"),
)


@pytest.mark.slow
@pytest.mark.parametrize("quote", [shlex.quote, str], ids=["quoted", "bare"])
def test_directives_stay_text(bash: Bash, quote: Callable[[str], str]) -> None:
    for text in texts(bash):
        if "\n" in text or "\0" in text or len(text) > 1000:
            continue
        lines = "".join(f"#SBATCH {directive.format(quote(text))}\n" for directive in DIRECTIVES)
        observed(bash, f"{HEAD}{lines}srun program7 x\n", "generic-slurm")


@pytest.mark.slow
def test_what_stands_unquoted_around_the_program_runs_nothing(bash: Bash) -> None:
    touch = f"touch {bash.canary}"
    words = [
        f"$({touch})",
        f'"$({touch})"',
        f"`{touch}`",
        f"${{X:-$({touch})}}",
        f"<({touch})",
        f"$[{touch}]",
    ]
    lines = [f"A{n}={word}\nexport A{n}" for n, word in enumerate(words)]
    lines += [f"srun program7 {' '.join(words)} $A1 ${{A2}}"]
    observed(bash, "\n".join([HEAD, *lines, ""]), "generic-slurm")


@pytest.mark.parametrize("unit", [")", ";", ">& ", "&>", "2>&1>a", "if "])
def test_a_line_of_many_words_that_group_commands_is_read_at_once(unit: str) -> None:
    block = re.compile(next(iter(WORDS["lines without a command"])))
    assert not block.fullmatch(f"{unit * 200} x")
    assert block.fullmatch("done 2>/dev/null >>a | {")
