"""The lines of scripts that have names: each is used, and one that lacks a fact is no line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpclaunch.package_data import resource_dir
from hpclaunch.software.script_lines import line

NAMES = sorted(json.loads((resource_dir("software") / "script_lines.json").read_text()))


def used_names(folder: Path) -> set[str]:
    return {
        name for path in folder.glob("*.py") for name in re.findall(r'\bline\("([^"]+)"', path.read_text())
    }


def test_every_line_is_used_and_every_name_has_one() -> None:
    assert sorted(used_names(resource_dir("plan")) | used_names(resource_dir("software"))) == NAMES


def test_facts_stand_where_the_line_has_their_names() -> None:
    made = line("all gpus", variable="CUDA_VISIBLE_DEVICES", numbers="0,@variable@")
    assert made.text == "export CUDA_VISIBLE_DEVICES=0,@variable@"
    with pytest.raises(KeyError):
        line("all gpus", variable="CUDA_VISIBLE_DEVICES")
