"""The findings of shellcheck, if it is installed."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.lint.batch_script import Language
from hpclaunch.lint.lint_rule import Finding, Severity

LIMIT_S = 30
PREFIX = "shellcheck-SC"

# Codes that are left out -> why: a rule of lint covers it, or it is wrong for batch scripts.
_LEFT_OUT = {
    "SC1090": "files that are sourced lie on the cluster",
    "SC1091": "files that are sourced lie on the cluster",
    "SC1017": "the rule line-endings reports it",
    "SC2034": "a step may use the variable; master-addr-unused and variable-name-mismatch are more exact",
    "SC2154": "modules set variables; mask-undefined-variable and variable-name-mismatch are more exact",
    "SC2155": "the sites' own pages write export X=$(command)",
}


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
    severity: Severity = "warning" if comment["level"] == "error" else "note"
    code = int(comment["code"])
    return Finding(
        line=int(comment["line"]),
        column=int(comment["column"]),
        rule=f"{PREFIX}{code}",
        severity=severity,
        message=str(comment["message"]),
        remedy=f"see https://www.shellcheck.net/wiki/SC{code}",
    )
