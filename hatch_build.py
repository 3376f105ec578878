"""Puts the commit of a checkout into its wheels and source archives, as ``hpclaunch/commit.txt``.

A tree without ``.git`` builds without it, or with the one that its source archive brought. An editable
install has none, since its code changes.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[BuilderConfig]):
    """The hook that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit to a file and add that file to the build."""
        commit = commit_of(Path(self.root))
        if version != "editable" and commit:
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / "commit.txt"
            file.write_text(f"{commit}\n")
            build_data["force_include"][str(file)] = "hpclaunch/commit.txt"


def commit_of(root: Path) -> str | None:
    """Return the commit of the checkout, with ``-dirty`` where its files differ; None: this is not one.

    A folder unpacked inside of another checkout is not one: its ``.git`` must be here.
    """
    if not (root / ".git").exists():
        return None
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(words, cwd=root, env=variables, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
