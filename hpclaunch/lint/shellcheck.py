"""The findings of shellcheck, if it is installed."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.lint.batch_script import Language
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import Finding, Severity

LIMIT_S = 30
PREFIX = "shellcheck-SC"

_LEFT_OUT = TABLE["no_shellcheck"]
LANGUAGES: tuple[Language, ...] = ("bash", "sh", "ksh")
"""Shellcheck reads no other ones (SC1071)."""


def find_shellcheck() -> Path | None:
    """Return the shellcheck next to this Python or on PATH; None: it is not installed."""
    bundled = Path(sys.executable).with_name("shellcheck")
    found = str(bundled) if bundled.is_file() else shutil.which("shellcheck")
    return Path(found) if found else None


def run_shellcheck(program: Path, text: str, host: Host) -> tuple[Finding, ...]:
    """Return shellcheck's findings: its errors as warnings, its warnings as notes.

    Findings about style are left out. Raises RefusedError if it cannot be run or its output cannot be read.
    """
    argv = [str(program), "--format=json1", "--severity=warning", f"--exclude={','.join(_LEFT_OUT)}", "-"]
    answer = host.run(argv, stdin=text.encode("utf-8", errors="replace"), timeout_s=LIMIT_S)
    try:
        comments = json.loads(answer.stdout)["comments"]
        return tuple(_finding(comment) for comment in comments)
    except (ValueError, KeyError, TypeError):
        first_line = (answer.stderr.strip().splitlines() or ["no JSON"])[0]
        raise RefusedError(f"{program}: its output cannot be read: {first_line}") from None


def _finding(comment: dict[str, Any]) -> Finding:
    code = int(comment["code"])
    grave = comment["level"] == "error" and code not in TABLE["shellcheck_notes"]
    severity: Severity = "warning" if grave else "note"
    return Finding(
        line=int(comment["line"]),
        column=int(comment["column"]),
        rule=f"{PREFIX}{code}",
        severity=severity,
        message=str(comment["message"]),
        remedy=f"see https://www.shellcheck.net/wiki/SC{code}",
    )
