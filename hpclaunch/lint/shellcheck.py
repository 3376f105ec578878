"""shellcheck's findings beside our own, where it is installed."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.lint.lint_rule import Finding, Severity

LIMIT_S = 30
PREFIX = "shellcheck-SC"

# Left out, each for a reason: what it would say is known, or not true of batch scripts.
_LEFT_OUT = {
    "SC1090": "files that are sourced lie on the cluster",
    "SC1091": "files that are sourced lie on the cluster",
    "SC1017": "our rule line-endings says it",
    "SC2034": "an unused variable may be meant for a step; master-addr-unused and variable-name-mismatch"
    " say more",
    "SC2154": "modules set variables; mask-undefined-variable and variable-name-mismatch say more",
    "SC2155": "export X=$(command) is how the sites' own pages write it",
}


def find_shellcheck() -> Path | None:
    """Return shellcheck beside this Python or on PATH, None where it is not installed."""
    beside = Path(sys.executable).with_name("shellcheck")
    found = str(beside) if beside.is_file() else shutil.which("shellcheck")
    return Path(found) if found else None


def run_shellcheck(program: Path, text: str, host: Host) -> tuple[Finding, ...]:
    """Return what shellcheck warns of: its errors as warnings, its warnings as notes.

    Its remarks on style are left out. Raises RefusedError where it cannot be run or its answer not be read.
    """
    argv = [str(program), "--format=json1", "--severity=warning", f"--exclude={','.join(_LEFT_OUT)}", "-"]
    answer = host.run(argv, stdin=text.encode("utf-8", errors="replace"), timeout_s=LIMIT_S)
    try:
        comments = json.loads(answer.stdout)["comments"]
        return tuple(_finding(comment) for comment in comments)
    except (ValueError, KeyError, TypeError):
        said = (answer.stderr.strip().splitlines() or ["no JSON"])[0]
        raise RefusedError(f"{program}: its answer cannot be read: {said}") from None


def _finding(comment: dict[str, Any]) -> Finding:
    severity: Severity = "warning" if comment["level"] == "error" else "note"
    code = int(comment["code"])
    return Finding(
        line=int(comment["line"]),
        rule=f"{PREFIX}{code}",
        severity=severity,
        message=str(comment["message"]),
        remedy=f"see https://www.shellcheck.net/wiki/SC{code}",
    )
