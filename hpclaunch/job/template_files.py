"""The templates of scripts as files, and their compiled form in the user's cache."""

import hashlib
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2 import StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache

from hpclaunch.job.template_overlays import (
    OverlaidTemplates,
    OverlayLoader,
    Overlays,
    Script,
    block_text,
    centre_blocks,
    comment,
    overlays,
)
from hpclaunch.package_data import resource_dir
from hpclaunch.software.shell_quoting import literal
from hpclaunch.user_folders import read_cached, write_cached


def script_templates() -> jinja2.Environment:
    """Return the templates: sandboxed, strict about undefined names, with the filters that they use."""
    return templates_in(resource_dir("templates"), centre_blocks(), overlays())


@lru_cache(maxsize=1)
def templates_in(
    folder: Path, blocks: tuple[tuple[str, Path], ...] = (), above: Overlays = ()
) -> jinja2.Environment:
    """Return the templates in a folder; a process reads each once, and again where its file has changed.

    ``blocks``: name and file of each that a centre adds; ``above``: the overlays.
    """
    environment = OverlaidTemplates(
        loader=OverlayLoader(folder),
        bytecode_cache=_CachedTemplates(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # a shell script, not HTML: the shquote filter quotes
    )
    environment.overlays, environment.template_class = above, Script
    environment.globals["blocks"] = {name: str(path) for name, path in blocks}
    environment.filters["text_of_block"] = lambda name: block_text(dict(blocks)[name])
    environment.filters["shquote"] = literal
    environment.filters["comment"] = comment
    environment.filters["text_of_file"] = remote_text
    return environment


def remote_text(name: str) -> str:
    """Return the text of a file of ``hpclaunch/remote``, without its first line, which is for shellcheck."""
    return (resource_dir("remote") / name).read_text("utf-8").partition("\n")[2]


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
