"""The templates of scripts: of each shipped one a cached program, which needs no Jinja, and overlays."""

import marshal
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any
from zlib import crc32

from hpclaunch.centre_folders import centre_files, centre_folders
from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import resource_dir, text_beside
from hpclaunch.plan.script_text import Placed, Templates
from hpclaunch.software.shell_quoting import literal
from hpclaunch.user_folders import read_cached, user_config_folder, write_cached

BLOCKS = ("before_environment", "after_environment")
"""Blocks of the templates that a centre may also fill by a file of shell lines, ``blocks/NAME.sh``."""
OVERLAY = "job.sh.j2"
"""File in the folder ``templates`` of the user or a centre; it extends what is below it by this name."""
SHARED = "_job.sh.j2"
"""The template that the one of each scheduler extends."""
SYNTAX: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
"""How all templates are read; nothing is escaped, since they are shell scripts, not HTML."""
Filters = Mapping[str, Callable[..., str]]
Overlays = list[tuple[str, Path]]
"""Whose each is, and its file; the one that counts most last."""


def script_templates() -> Templates:
    """Return the templates, with the lines that the user and the centre add."""
    folder, blocks, above = resource_dir("templates"), centre_blocks(), overlays()

    def template(name: str) -> Callable[..., str]:
        texts = tuple((each, (folder / each).read_text("utf-8")) for each in (name, SHARED))
        return lambda **facts: _script(_program(name, texts), facts, _filters(blocks), above)

    return template


def _script(code: CodeType, facts: dict[str, Any], filters: Filters, above: Overlays) -> str:
    program = {**facts, **filters}
    exec(code, program)  # noqa: S102 - of a shipped template
    texts = {name[6:]: make() for name, make in program.items() if above and re.match("block_[^_]", name)}
    if texts:
        from hpclaunch.job.template_overlays import overlaid

        added = ((path, text_of(path), f"# Of {whose}, {comment(str(path))}:\n") for whose, path in above)
        changed = overlaid(texts, added, facts, filters, **SYNTAX)
        program |= {f"block_{name}": text.__str__ for name, text in changed.items()}
    script: str = program["script"]()
    if texts and (said := not_bash(script)):
        files = ", ".join(str(path) for _, path in above)
        raise BadInputError(f"{files}: bash cannot read a script with it: {said}", "end what it begins")
    return script


def _filters(blocks: Mapping[str, Path]) -> Filters:
    """Return the filters of the templates that are not Jinja's own."""

    def of_centre(name: str) -> str:
        path = blocks.get(name)
        return f"# Of the centre, {comment(str(path))}:\n{block_text(path)}" if path else ""

    own = {"of_centre": of_centre, "text_of_file": remote_text, "shquote": literal}
    return {**own, "comment": comment, "put": _put}


@lru_cache(maxsize=32)
def _program(name: str, texts: tuple[tuple[str, str], ...]) -> CodeType:
    """Return the program of a template, from the cache where the same Python, code and texts made it."""
    code = (text_beside(__file__, part) for part in ("template_program.py", "template_forms.json"))
    made_from = "\0".join((sys.version, *code, *map("\0".join, texts))).encode()
    kept = (read_cached(f"templates/{name}") or b"").removeprefix(made_from)
    if crc32(kept[4:]).to_bytes(4, "big") == kept[:4]:
        program: CodeType = marshal.loads(kept[4:])  # noqa: S302 - the user's own file, as it was written
        return program
    from hpclaunch.job.template_program import translated  # Jinja takes as long as all the rest

    program = translated(name, dict(texts), **SYNTAX)
    data = marshal.dumps(program)
    write_cached(f"templates/{name}", made_from + crc32(data).to_bytes(4, "big") + data)
    return program


def _put(lines: Iterable[Placed], sentinel: str = "") -> str:
    return "".join(
        f"{text}\n"
        for line in lines
        for text in (*(f"# {comment(e)}" for e in line.above), sentinel + line.text + comment(line.comment))
    )


def remote_text(name: str) -> str:
    """Return the text of a file of ``hpclaunch/remote``, without its first line, which is for shellcheck."""
    return (resource_dir("remote") / name).read_text("utf-8").partition("\n")[2]


def centre_blocks() -> dict[str, Path]:
    """Return name and file of each block that a centre fills. Raises BadInputError for unknown ones."""
    found = (path for folder in reversed(centre_folders()) for path in centre_files(folder, "blocks/*.sh"))
    blocks = {path.stem: path for path in found}
    if unknown := sorted(blocks.keys() - BLOCKS):
        raise BadInputError(f"{blocks[unknown[0]]}: no block has this name", f"there are {', '.join(BLOCKS)}")
    return blocks


def overlays() -> Overlays:
    """Return the overlays of the user and of the centre."""
    own = user_config_folder() / "templates" / OVERLAY
    found = [("the user", own)] if own.is_file() else []
    for folder in centre_folders():
        found += [("the centre", path) for path in centre_files(folder, f"templates/{OVERLAY}")]
    return found[::-1]


def block_text(path: Path) -> str:
    """Return the shell lines of a centre's block, which bash can read on their own. Raises BadInputError."""
    text = text_of(path).rstrip("\n") + "\n"
    said = not_bash(text)
    if said or text.endswith("\\\n"):  # it would swallow the lines after it
        raise BadInputError(f"{path}: {said or 'its last line goes on'}", "end what it begins")
    return text


def text_of(path: Path) -> str:
    """Return the text of what a centre or the user added. Raises BadInputError."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: {error}", "lines in UTF-8") from error


def not_bash(text: str) -> str:
    """Return why bash cannot read a text; empty where it can."""
    check = ("env", "-u", "BASH_ENV", "LC_ALL=C", "bash", "-n")
    return LocalHost().run(check, stdin=text.encode(), timeout_s=10).stderr.strip()


def comment(text: str) -> str:
    """Make a text safe inside one comment line: no line break may end it, no mark may change its look."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
