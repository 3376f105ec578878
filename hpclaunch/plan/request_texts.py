"""Which texts of a request a script can carry: the rest is refused before anything is planned.

Everything that passes here is quoted where the script holds it. Names that stand in the directives of a
scheduler, where quotes are read differently from site to site, are plain words (``job_header.PLAIN_WORD``).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, package_patterns, text_beside
from hpclaunch.plan.frameworks import deepspeed_config
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.settings_table import rows
from hpclaunch.scheduler.job_header import PLAIN_WORD, Line
from hpclaunch.scheduler.scheduler_interface import Scheduler

_WORD = package_constants("plan/forms.json", "request_texts")
_FORM = package_patterns("plan/forms.json", "request_texts")

_OWNED = msgspec.json.decode(text_beside(__file__, "owned_variables.json"), type=dict[str, frozenset[str]])
SHELL_OWN = _OWNED["bash"]
"""Variables that bash sets or obeys (man bash, Shell Variables): no value stays, or the script would fail."""
SCRIPT_OWN = _OWNED["script"]
"""Variables of scripts, as all that begin with ``hpclaunch_``: a job that sets one changes its script."""


def check_texts(request: JobRequest) -> None:
    """Refuse texts that no script could carry unchanged; raises BadInputError with the option or key."""
    for path, text in _texts(request, ()):
        _check_text(path, text)
    config = deepspeed_config(request.command.argv) if request.zero_stage is not None else None
    if config and not config.isprintable():
        raise BadInputError.case("zero-stage: name of the file", config=config)
    for name in request.env:
        _check_variable(name)
    if request.python is not None and request.python.startswith(("%", "-")):  # %1: a job of bash
        raise BadInputError(f"--python {request.python!r} is not a program", "give its path")


def looks_secret(name: str) -> bool:
    """Tell whether a variable of this name probably holds a secret."""
    return _FORM.secret.search(name) is not None


def check_secrets(request: JobRequest, settings: Iterable[Setting], scheduler: Scheduler) -> None:
    """Refuse variables that look like secrets, since scripts and records contain the variables of ``env``."""
    for name in request.env:
        if looks_secret(name):
            origin = next((s.origin for s in settings if s.name == f"env {name}"), "the request")
            instead = scheduler.environment_hint.format(name=name)
            raise BadInputError.case("env: secret", origin=origin, name=name, instead=instead)


def check_names(request: JobRequest) -> None:
    """Refuse an account, a queue or a plugin that a directive or launcher cannot carry, with its option."""
    named = (("--account", request.account), ("--partition", request.queue), ("--mpi", request.mpi))
    for option, text in named:
        if text is not None and not PLAIN_WORD.fullmatch(text):
            raise BadInputError.case("text: no plain word", option=option, text=_shown(text))


def check_overridden(request: JobRequest, rank_setup: Iterable[Line]) -> None:
    """Refuse variables of ``env`` that each rank's own lines set to another value afterwards."""
    text = "\n".join(line.text for line in rank_setup)
    for exported in re.findall(r"^export ((?:[A-Za-z_]\w*=\S* ?)+)", text, re.MULTILINE):
        for name in re.findall(r"(?:^| )([A-Za-z_]\w*)=", exported):
            if name in request.env:
                raise BadInputError.case("env: set by the script", name=name)


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text in a value, names of mappings included, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name), (*path, name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, "name"), key
            yield from _texts(item, (*path, key))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _texts(item, (*path, number))


def _check_text(path: tuple[str | int, ...], text: str) -> None:
    free = path[:2] == ("command", "argv") or (path[0] == "env" and path[1] != "name")
    where = _where(path)
    if not text and not (free and path != ("command", "argv", 0)):
        raise BadInputError(f"{where} is empty", "give a value, or leave it out")
    if "\0" in text or text.encode(errors="ignore").decode() != text:  # a half of a surrogate pair
        raise BadInputError.case("text: character", where=where, text=_shown(text))
    if not free and not text.isprintable() and re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise BadInputError.case("text: line break", where=where, text=_shown(text))
    name_bytes = len(str(path[1]).encode()) + 1 if path[0] == "env" else 0
    limit = _WORD.max_word_bytes - name_bytes if free else _WORD.max_bytes
    if (size := len(text.encode())) > limit:
        case = "long word" if free else "long"
        raise BadInputError.case(f"text: {case}", where=where, size=size, limit=limit)


def _check_variable(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BadInputError.case("env: name", name=_shown(name))
    if name in SHELL_OWN or name in SCRIPT_OWN or name.startswith("hpclaunch_"):
        owner = "bash" if name in SHELL_OWN else "the script"
        raise BadInputError(f"env {name}: {owner} uses this variable itself", "give yours another name")


def _where(path: tuple[str | int, ...]) -> str:
    """Return the option of a setting, or the key of the job file for what is inside of one."""
    if path[:2] == ("command", "argv"):
        return f"word {int(path[2]) + 1} of the command"
    if path[0] == "env":
        return "env: a name" if path[1] == "name" else f"env {path[1]}"
    row = next(row for row in rows() if row.name == path[0])
    if row.group:
        return next((o for o in row.options if o.startswith("--")), f"--{row.name.replace('_', '-')}")
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _shown(text: str) -> str:
    return ascii(text) if len(text) <= 60 else f"{text[:57]!a}..."
