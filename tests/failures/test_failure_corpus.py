"""The form of the corpus of failed and healthy jobs, whatever a reader of errors makes of it."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.in_one_test import in_one_test

CORPUS = Path(__file__).parents[1] / "data" / "failures"
FILES = sorted(CORPUS.glob("*/*.yaml"))
KEYS = {"kind", "facts", "composed", "ranks", "log"}
LABEL = {"rank", "cause", "also", "line", "where"}


@cache
def case(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


@cache
def causes() -> set[str]:
    lines = (CORPUS / "causes.txt").read_text().splitlines()
    return {line.partition(" | ")[0] for line in lines if not line.startswith("#")}


@in_one_test("path", FILES)
def test_a_case_has_its_form(path: Path) -> None:
    found = case(path)
    assert ("made" in found) != ("source" in found)
    failed = found["kind"] == "failure"
    assert failed or found["kind"] == "healthy"
    assert set(found) - {"made", "source", "stderr"} == KEYS | ({"expect"} if failed else set())
    assert isinstance(found["facts"], str)
    assert isinstance(found["composed"], bool)
    assert found["ranks"] >= 1
    assert 1 <= found["log"].count("\n") <= (800 if path.stem.startswith(("seventh-", "eighth-")) else 260)
    assert found.get("source", "https://").startswith("https://")
    assert all(re.fullmatch(r"\d+", rank) and text for rank, text in found.get("stderr", {}).items())
    if failed:
        label_fits(found)


def label_fits(found: dict[str, Any]) -> None:
    label = found["expect"]
    assert set(label) == LABEL
    assert {label["cause"], *label["also"]} <= causes()
    assert label["cause"] not in label["also"]
    assert all(0 <= int(rank) < found["ranks"] for rank in label["rank"])
    texts = [found["log"], *found.get("stderr", {}).values()]
    assert label["line"] is None or any(label["line"] in text for text in texts)
    if label["where"] is not None:
        name, _, line = label["where"].rpartition(":")
        seen = re.compile(rf'{re.escape(name)}(\\?", line |: line |:){line}\b')
        assert any(seen.search(text) for text in texts)


def test_the_kept_half_was_drawn_by_lot() -> None:
    """By the second byte, the fourth author's by the third, too, the later ones' by the last alone.

    Whoever reads a case moves it for good.
    """
    assert len({path.stem for path in FILES}) == len(FILES)
    kept = [path.stem for path in FILES if path.parent.name == "kept"]
    later = [
        name
        for name in kept
        if name.startswith(("fifth-", "sixth-", "seventh-", "eighth-", "ninth-", "tenth-"))
    ]
    assert [name for name in later if hashlib.sha256(name.encode()).digest()[-1] % 2] == []
    earlier = [name for name in kept if name not in later]
    assert [name for name in earlier if hashlib.sha256(name.encode()).digest()[1] % 2] == []
    fourth = [name for name in kept if name.startswith("fourth-")]
    assert [name for name in fourth if hashlib.sha256(name.encode()).digest()[2] % 2] == []


def test_there_are_enough_of_both() -> None:
    kinds = [(path.parent.name, case(path)["kind"]) for path in FILES]
    assert kinds.count(("open", "failure")) >= 120
    assert kinds.count(("open", "healthy")) >= 40
    assert kinds.count(("kept", "failure")) >= 80
    assert kinds.count(("kept", "healthy")) >= 20


def test_the_causes_are_spread() -> None:
    seen = {label["cause"] for path in FILES if (label := case(path).get("expect"))}
    assert len(seen) >= 60
