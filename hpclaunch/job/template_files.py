"""The templates of scripts as files, and their compiled form in the user's cache."""

import hashlib
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpclaunch.centre_folders import centre_files, centre_folders
from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import resource_dir
from hpclaunch.software.shell_quoting import literal
from hpclaunch.user_folders import read_cached, write_cached


def script_templates() -> jinja2.Environment:
    """Return the templates: sandboxed, strict about undefined names, with the filters that they use."""
    blocks = {
        path.stem: path
        for folder in reversed(centre_folders())
        for path in centre_files(folder, "blocks/*.sh")
    }
    if unknown := sorted(blocks.keys() - BLOCKS):
        raise BadInputError(f"{blocks[unknown[0]]}: no block has this name", f"there are {', '.join(BLOCKS)}")
    return templates_in(resource_dir("templates"), tuple(blocks.items()))


BLOCKS = ("before_environment", "after_environment")
"""Places in every script at which a centre adds shell lines, the file ``blocks/NAME.sh`` of its folder."""


@lru_cache(maxsize=1)
def templates_in(folder: Path, blocks: tuple[tuple[str, Path], ...] = ()) -> jinja2.Environment:
    """Return the templates in a folder; a process reads each once, and again where its file has changed.

    ``blocks``: name and file of each that a centre adds.
    """
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folder),
        bytecode_cache=_CachedTemplates(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # a shell script, not HTML: the shquote filter quotes
    )
    environment.globals["blocks"] = {name: str(path) for name, path in blocks}
    environment.filters["text_of_block"] = lambda name: _lines(dict(blocks)[name])
    environment.filters["shquote"] = literal
    environment.filters["comment"] = comment
    environment.filters["text_of_file"] = remote_text
    return environment


def _lines(path: Path) -> str:
    """The shell lines of a centre's block, which bash can read on their own. Raises BadInputError."""
    try:
        text = path.read_text("utf-8").rstrip("\n") + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: {error}", "shell lines in UTF-8") from error
    check = ("env", "-u", "BASH_ENV", "LC_ALL=C", "bash", "-n", "-c", text)
    said = LocalHost().run(check, timeout_s=10).stderr.strip()
    if said or text.endswith("\\\n"):
        # It would swallow the lines after it.
        raise BadInputError(f"{path}: {said or 'its last line goes on'}", "end what it begins")
    return text


def remote_text(name: str) -> str:
    """Return the text of a file of ``hpclaunch/remote``, without its first line, which is for shellcheck."""
    return (resource_dir("remote") / name).read_text("utf-8").partition("\n")[2]


def comment(text: str) -> str:
    """Make a text safe inside one comment line: no line break may end it, no mark may change its look."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


class _CachedTemplates(BytecodeCache):
    """Compiled templates, used while the template, this module, Jinja and Python are those that made them.

    Jinja itself looks at the template's text and at Python's version.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket if its template is in the cache."""
        data = read_cached(f"templates/{bucket.key}") or b""
        if data[:32] == self._seal(data[32:]):
            bucket.bytecode_from_string(data[32:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Put the bucket into the cache."""
        data = bucket.bytecode_to_string()
        write_cached(f"templates/{bucket.key}", self._seal(data) + data)

    @staticmethod
    def _seal(data: bytes) -> bytes:
        parts = (jinja2.__version__.encode(), Path(__file__).read_bytes(), data)
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
