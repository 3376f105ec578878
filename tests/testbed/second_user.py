"""A second user of the machine, who may be curious or hostile: ``nobody``, as whom root runs programs."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path


class SecondUser:
    """Runs programs as a user who is neither root nor the one who tests, and owns files."""

    def __init__(self) -> None:
        """Use the account ``nobody``, which each system has."""
        account = pwd.getpwnam("nobody")
        self.name, self.uid, self.gid = account.pw_name, account.pw_uid, account.pw_gid

    def run(self, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program from ``/`` with this environment and PATH, and no group of root's."""
        return subprocess.run(
            [str(word) for word in words],
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def shell(self, text: str, **environment: str) -> str:
        """Run a line of shell and return its output; it must succeed."""
        done = self.run("bash", "-ec", text, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def owns(self, path: Path) -> None:
        """Give this user a file or folder and all below it."""
        for one in (path, *path.rglob("*")):
            os.chown(one, self.uid, self.gid, follow_symlinks=False)
