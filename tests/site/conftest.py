"""Profiles of the tests' own: a valid one to spoil, and a config folder that is not the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]

# 30 lines; tests that name a line count from here.
VALID = """\
schema: 1
name: here
description: a machine for tests
sources:
  page:
    url: https://example.org/page
    checked: 2026-11-20
scheduler: {kind: slurm, launcher: srun}
account: {required: true, pattern: 'p\\d+', example: p1}
queues:
  main:
    max_nodes: 4
    max_walltime: 01:00:00
    source: page
node:
  cpu_model: test
  cores: 8
  threads_per_core: 2
  numa:
    - {id: 0, cores: 0-3}
    - {id: 1, cores: 4-7}
  l3_groups: [0-1, 2-3, 4-5, 6-7]
  reserved_cores: 0,4
  memory_gib: 16
  gpus:
    - {numa: 1, cores: 4-5, nic: hsn0}
  nics: [{name: hsn0, numa: 1}]
binding: {cpu: mask_cpu}
env:
  A: {value: "1", reason: because, source: page}
"""


@pytest.fixture(autouse=True)
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of profiles, empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "hpclaunch" / "sites"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(sites: Path) -> Write:
    """Write a user's profile: the valid one with pieces replaced, or a text."""

    def write(name: str, *changes: tuple[str, str], text: str = VALID) -> Path:
        for old, new in changes:
            assert text.count(old) == 1, f"{old!r} must stand once to be replaced"
            text = text.replace(old, new)
        path = sites / f"{name}.yaml"
        path.write_text(text.replace("name: here", f"name: {name}"), encoding="utf-8")
        return path

    return write
