"""The findings of shellcheck, if it is installed."""

import json
import shutil
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.lint.batch_script import Language
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import Finding, Severity
from hpclaunch.shell.shell_reader import read_shell

LIMIT_S = 30
PREFIX = "shellcheck-SC"
READ = lru_cache(maxsize=1)(read_shell)  # many findings are about one script

_LEFT_OUT = TABLE["no_shellcheck"]
_GRAVE = {int(code) for codes in TABLE["shellcheck_warnings"].values() for code in str(codes).split()}
LANGUAGES: tuple[Language, ...] = ("bash", "sh", "ksh")
"""Shellcheck reads no other ones (SC1071)."""


def find_shellcheck() -> Path | None:
    """Return the shellcheck next to this Python or on PATH; None: it is not installed."""
    bundled = Path(sys.executable).with_name("shellcheck")
    found = str(bundled) if bundled.is_file() else shutil.which("shellcheck")
    return Path(found) if found else None


def run_shellcheck(program: Path, text: str, host: Host) -> tuple[Finding, ...]:
    """Return shellcheck's findings: errors that change what the job does as warnings, others as notes.

    Findings about style are left out. Raises RefusedError if it cannot be run or its output cannot be read.
    """
    argv = [str(program), "--format=json1", "--severity=warning", f"--exclude={','.join(_LEFT_OUT)}", "-"]
    read = text + "\n" * text.endswith("\\")  # a backslash at the end means nothing to bash 5.2
    answer = host.run(argv, stdin=read.encode("utf-8", errors="replace"), timeout_s=LIMIT_S)
    try:
        comments = json.loads(answer.stdout)["comments"]
        return tuple(_finding(comment) for comment in comments if not _is_harmless(comment, text))
    except (ValueError, KeyError, TypeError):
        first_line = (answer.stderr.strip().splitlines() or ["no JSON"])[0]
        raise RefusedError(f"{program}: its output cannot be read: {first_line}") from None


def _is_harmless(comment: dict[str, Any], text: str) -> bool:
    """Tell whether what shellcheck reports does as it is meant to.

    echo prints its words with blanks between, whatever they were joined to (POSIX, echo). Bash does not split
    the word of a here-string (its manual, 3.6.7; before 4.4 it joined the pieces with blanks again).
    """
    line, column, code = int(comment["line"]), int(comment["column"]), int(comment["code"])
    if code == 2145:
        at = sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1
        inside = [one for one in READ(text).commands if one.start <= at < one.end]
        return bool(inside) and inside[-1].name == "echo"
    here = text.split("\n")[line - 1][: column - 1]
    return code == 2046 and here.rstrip().endswith("<<<")


def _finding(comment: dict[str, Any]) -> Finding:
    code = int(comment["code"])
    severity: Severity = "warning" if comment["level"] == "error" and code in _GRAVE else "note"
    return Finding(
        line=int(comment["line"]),
        column=int(comment["column"]),
        rule=f"{PREFIX}{code}",
        severity=severity,
        message=str(comment["message"]).removesuffix("."),
        remedy=f"see https://www.shellcheck.net/wiki/SC{code}",
    )
