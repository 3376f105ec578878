"""Make a fixture of what on_gpu.sh has written: without the names and numbers of a person or a machine.

    python benchmarks/keep_gpu_outputs.py FOLDER tests/data/on_gpu/NAME

NAME says the GPUs, such as h100x4-2026-12-01, or begins with fake. Host and user names, folders, identifiers,
serial numbers and addresses are replaced, in the same way in all files; jobs' folders are left out; traces
and the copy of /sys are packed. Before anything is written, it looks once more for all that it has replaced.
Read the result before you give it away: other names that a machine has may be in it.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

LEFT_OUT = {"state", "private.txt", "__pycache__"}
PUBLIC_USERS = {"root", "user"}
"""Names that say nothing, and are words of other meanings."""
PATTERNS = {
    "identifier": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "serial": r"(?<=Serial Number)(\s*:\s*)(?!N/A)\S+",
    "guid": r"(?:(?<=GPU PDI)|(?<=GUID)|(?<=Board ID)|(?<=GPU Fabric GUID))(\s*:\s*)(?!N/A)\S+",
    "address": r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])",
    "hardware address": r"(?<![0-9a-f:])[0-9a-f]{2}(?::[0-9a-f]{2}){5}(?![0-9a-f:])",
    "long address": r"(?<![0-9a-f:])(?:fe80|fd[0-9a-f]{2}|2[0-9a-f]{3}):[0-9a-f:]*:[0-9a-f]+",
}
"""What is replaced wherever it stands. A group is what stands before the value and stays."""
MADE_UP = {
    "identifier": "00000000-0000-0000-0000-{:012d}",
    "serial": "{:013d}",
    "guid": "0x{:016x}",
    "address": "192.0.2.{}",
    "hardware address": "02:00:00:00:00:{:02x}",
    "long address": "2001:db8::{:x}",
}
PACKED = ("topology/node",)
ZIPPED = "timeline/traces/*.json"


class Replacer:
    """Replaces private words; the same word becomes the same one everywhere."""

    def __init__(self, private: list[str]) -> None:
        """``private``: the lines of private.txt: host names, the user, and three folders, home last."""
        *names, out, parts, home = private
        folders = {out: "/out", parts: "/parts", home: "/home/user"}
        named = {name: "user" if name == names[-1] else "node1" for name in names}
        self.words = {word: new for word, new in {**folders, **named}.items() if self._is_private(word)}
        self.seen: dict[str, dict[str, str]] = {kind: {} for kind in PATTERNS}

    @staticmethod
    def _is_private(word: str) -> bool:
        return len(word) > 1 and word not in PUBLIC_USERS and word != "localhost"

    def text(self, text: str) -> str:
        """Return the text with all private words replaced."""
        for word, new in self.words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", new, text)
        for kind, pattern in PATTERNS.items():
            text = re.sub(pattern, partial(self._made_up, kind), text)
        return text

    def _made_up(self, kind: str, match: re.Match[str]) -> str:
        before = match[1] if match.re.groups else ""
        old = match[0].removeprefix(before)
        if old in ("127.0.0.1", "0.0.0.0"):
            return match[0]
        known = self.seen[kind]
        return before + known.setdefault(old, MADE_UP[kind].format(len(known) + 1))

    def left_in(self, text: str) -> Iterator[str]:
        """Yield the private words that the text still has."""
        new = {made for known in self.seen.values() for made in known.values()}
        old = {word for known in self.seen.values() for word in known} - new
        for word in (*self.words, *old):
            if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text):
                yield word


def replaced(folder: Path, replacer: Replacer) -> dict[str, str]:
    """Return all texts of a folder by their paths, both without private words. Links are left out."""
    found = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if LEFT_OUT.isdisjoint(path.parts) and file.is_file() and not file.is_symlink():
            found[replacer.text(str(path))] = replacer.text(file.read_text(errors="replace"))
    return found


def packed(texts: Mapping[str, str], below: str) -> bytes:
    """Return the files below a folder as an archive, the same for the same texts."""
    data = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=data, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path, text in texts.items():
            if path.startswith(f"{below}/"):
                entry = tarfile.TarInfo(path.removeprefix(f"{below}/"))
                entry.size = len(text.encode())
                tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def files(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return what the fixture holds: large parts are packed."""
    found = {}
    for path, text in texts.items():
        if Path(path).match(ZIPPED):
            found[f"{path}.gz"] = gzip.compress(text.encode(), mtime=0)
        elif not path.startswith(tuple(f"{below}/" for below in PACKED)):
            found[path] = text.encode()
    return found | {f"{below}.tar.gz": packed(texts, below) for below in PACKED}


def main() -> None:
    """Replace, look again, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("fixture", type=Path)
    given = parser.parse_args()
    if given.fixture.exists():
        parser.error(f"{given.fixture}: it exists; name a folder that does not")
    replacer = Replacer((given.folder / "private.txt").read_text().splitlines())
    texts = replaced(given.folder, replacer)
    left = {word: path for path, text in texts.items() for word in replacer.left_in(f"{path}\n{text}")}
    if left:
        parser.error("still there, nothing written: " + ", ".join(f"{word} in {left[word]}" for word in left))
    for path, content in files(texts).items():
        file = given.fixture / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    print(f"{given.fixture}: {len(texts)} files; read them before you give them away")


if __name__ == "__main__":
    main()
