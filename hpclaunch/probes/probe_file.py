"""The file of a probe: commands with their answers, from which facts are derived whenever it is read."""

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from hpclaunch.atomic_file import write_file
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError
from hpclaunch.plan.request_texts import looks_secret


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one command."""

    command: str
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""

    @property
    def result(self) -> CommandResult | None:
        """The answer as parsers take it; None: there is none."""
        if self.exit_code is None:
            return None
        return CommandResult(exit_code=self.exit_code, stdout=self.stdout, stderr=self.stderr)


class ProbeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One probe of one machine."""

    format: Literal[1] = 1
    hpclaunch: str
    day: dt.date
    site: str
    scheduler: str
    origin: str = "measured"
    login: dict[str, Answer] = {}
    node: dict[str, Answer] = {}


def write_probe(path: Path, probe: ProbeFile) -> None:
    """Write the file, readable by its owner alone."""
    text = msgspec.json.format(msgspec.json.encode(probe), indent=1)
    write_file(path, text + b"\n", 0o600)


def read_probe(path: Path) -> ProbeFile:
    """Return a probe. Raises BadInputError with the file and the key that is wrong."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ProbeFile)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise BadInputError.case("probe: no probe", path=path, error=error) from None


_COMMON = re.compile(
    "root|users?|all|none|default|normal|gpu|cpu|nodes?|login|compute|debug|test|batch|short|long|main|local|"
    "localhost|host|home|scratch|project|slurm|lab|name|yes|no|unlimited",
    re.IGNORECASE,
)
"""Words that are no names, and without which the answers could not be read."""
_ADDRESSES = (
    (re.compile(r"\b(?!0\.0\.0\.0|127\.0\.0\.1)(?:\d{1,3}\.){3}\d{1,3}\b"), "192.0.2.1"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5,}[0-9a-f]{2}\b", re.IGNORECASE), "00:00:5e:00:53:00"),
    (re.compile(r"\b(?:[0-9a-f]{1,4}:){3,7}:?[0-9a-f]{1,4}\b", re.IGNORECASE), "2001:db8::1"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b"), "user@example.org"),
    (
        re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
        r"\1-00000000-0000-0000-0000-000000000000",
    ),
)
_STEM = re.compile(r"^(.*?)[\d\[].*$")


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Names that must not be in the file."""

    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


def without_names(probe: ProbeFile, names: Names) -> ProbeFile:
    """Return the probe with other names, the same one for the same name everywhere."""
    short = [host.partition(".")[0] for host in names.hosts]
    whole = {
        **{home: "/home/user" for home in names.homes if home not in ("", "/", "/root")},
        **_numbered("user", names.users),
        **_numbered("project", names.accounts),
        **dict.fromkeys({host.partition(".")[2] for host in names.hosts} - {""}, "example.org"),
        **_numbered("host", [host for host in short if not _stem(host)]),
    }
    stems = _numbered("node", filter(None, map(_stem, short)), tail="x")
    words = [*_patterns(whole, "(?![A-Za-z0-9])"), *_patterns(stems, r"(?=[\d\[])"), *_ADDRESSES]
    return replace(
        probe,
        login={name: _cleaned(answer, words) for name, answer in probe.login.items()},
        node={name: _cleaned(answer, words) for name, answer in probe.node.items()},
    )


def without_secrets(text: str) -> str:
    """Return an answer without the values of variables whose names tell of a secret, such as SLURM_JWT."""
    return _VARIABLE.sub(lambda found: f"{found[1]}=..." if looks_secret(found[1]) else found[0], text)


_VARIABLE = re.compile(r"^(\w+)=.+$", re.MULTILINE)


def _cleaned(answer: Answer, words: list[tuple[re.Pattern[str], str]]) -> Answer:
    texts = {key: _clean(getattr(answer, key), words) for key in ("command", "stdout", "stderr")}
    return replace(answer, **texts)


def _clean(text: str, words: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, word in words:
        text = pattern.sub(word, text)
    return text


def _patterns(words: Mapping[str, str], behind: str) -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}{behind}", re.IGNORECASE), word)
        for name, word in sorted(words.items(), key=lambda pair: -len(pair[0]))
    ]


def _stem(host: str) -> str:
    """Return what stands before the number of a node's name, such as ``nid`` of ``nid001234``."""
    match = _STEM.match(host.partition(".")[0])
    return match[1] if match and not _COMMON.fullmatch(match[1]) else ""


def _numbered(kind: str, names: Iterable[str], tail: str = "") -> Mapping[str, str]:
    secret = [name for name in dict.fromkeys(names) if len(name) > 1 and not _COMMON.fullmatch(name)]
    return {name: f"{kind}{number}{tail}" for number, name in enumerate(sorted(secret), 1)}
