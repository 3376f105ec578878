"""The templates of scripts as files, what a centre or the user adds to them, and their compiled form.

An overlay is a small template, ``templates/job.sh.j2`` in a folder of theirs, which extends the shipped ones
block by block. A file of shell lines, ``blocks/NAME.sh``, fills one of two blocks. The user's cache has the
compiled templates.
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2 import FileSystemLoader, StrictUndefined, nodes
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpclaunch.errors import BadInputError
from hpclaunch.folders import centre_files, centre_folders, read_cached, user_config_folder, write_cached
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import resource_dir
from hpclaunch.software.script_lines import literal

BLOCKS = ("before_environment", "after_environment")
"""Blocks of the templates that a centre may also fill by a file of shell lines, ``blocks/NAME.sh``."""
OVERLAY = "job.sh.j2"
"""File in the folder ``templates`` of the user or a centre; it extends what is below it by this name."""
Overlays = tuple[tuple[str, Path], ...]
"""Whose each is, and its file; the one that counts most first."""


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
    remote = resource_dir("remote")  # the first line of its files is for shellcheck
    environment.filters["text_of_file"] = lambda name: (remote / name).read_text("utf-8").partition("\n")[2]
    return environment


class _CachedTemplates(BytecodeCache):
    """Compiled templates, used while the template, this module, Jinja and Python are those that made them."""

    def load_bytecode(self, bucket: Bucket) -> None:
        data = read_cached(f"templates/{bucket.key}") or b""
        if data[:32] == self._seal(data[32:]):
            bucket.bytecode_from_string(data[32:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        data = bucket.bytecode_to_string()
        write_cached(f"templates/{bucket.key}", self._seal(data) + data)

    @staticmethod
    def _seal(data: bytes) -> bytes:
        parts = (jinja2.__version__.encode(), Path(__file__).read_bytes(), data)
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def centre_blocks() -> tuple[tuple[str, Path], ...]:
    """Return name and file of each block that a centre fills. Raises BadInputError for unknown ones."""
    blocks = {
        path.stem: path
        for folder in reversed(centre_folders())
        for path in centre_files(folder, "blocks/*.sh")
    }
    if unknown := sorted(blocks.keys() - BLOCKS):
        raise BadInputError(f"{blocks[unknown[0]]}: no block has this name", f"there are {', '.join(BLOCKS)}")
    return tuple(blocks.items())


def overlays() -> Overlays:
    """Return the overlays of the user and of the centre."""
    own = user_config_folder() / "templates" / OVERLAY
    found = [("the user", own)] if own.is_file() else []
    for folder in centre_folders():
        found += [("the centre", path) for path in centre_files(folder, f"templates/{OVERLAY}")]
    return tuple(found)


class OverlaidTemplates(ImmutableSandboxedEnvironment):
    """The shipped templates with the overlays over them: ``1:slurm.sh.j2`` is the second one of that."""

    overlays: Overlays = ()

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> jinja2.Template:
        """Return a template; one that no other asks for has the overlays over it."""
        top = f"0:{name}" if parent is None and self.overlays else name
        return super().get_template(top, parent, globals)

    def join_path(self, template: str, parent: str) -> str:
        """Return the name of a template that another one names: below an overlay is the next one."""
        number, colon, shipped = parent.partition(":")
        if template != OVERLAY or not colon:
            return template
        below = int(number) + 1
        return f"{below}:{shipped}" if below < len(self.overlays) else shipped

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Raise BadInputError with the line of an overlay for what went wrong in one."""
        try:
            super().handle_exception(source)
        except BadInputError:
            raise
        except Exception as error:
            from traceback import walk_tb  # only messages need it

            files = {str(path) for _, path in self.overlays}
            places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
            if isinstance(error, jinja2.TemplateSyntaxError):
                places.append((error.filename or "", error.lineno))
            for file, line in reversed(places):
                if file in files:
                    hint = "hpclaunch's own templates show the names that there are: _job.sh.j2"
                    raise BadInputError(f"{file}, line {line}: {error}", hint) from error
            raise


class Script(jinja2.Template):
    """A template of a whole script."""

    def render(self, *args: Any, **facts: Any) -> str:
        """Return the script; raises BadInputError where bash cannot read it with the overlays."""
        text, above = super().render(*args, **facts), getattr(self.environment, "overlays", ())
        if above and (said := _not_bash(text)):
            files = ", ".join(str(path) for _, path in above)
            raise BadInputError(f"{files}: bash cannot read a script with it: {said}", "end what it begins")
        return text


class OverlayLoader(FileSystemLoader):
    """Reads the shipped templates from a folder, and overlays from their files."""

    def load(self, environment: Any, name: str, globals: Any = None) -> jinja2.Template:
        """Return a shipped template, or an overlay, in which each block says whose lines it adds."""
        number, colon, _ = name.partition(":")
        if not colon:
            return super().load(environment, name, globals)
        whose, path = environment.overlays[int(number)]
        changed, tree = path.stat().st_mtime_ns, environment.parse(_text(path), name, str(path))
        known = environment.get_template("_job.sh.j2", name).blocks
        _check_overlay(tree, path, tuple(each for each in known if not each.startswith("_")))
        for block in tree.find_all(nodes.Block):
            block.body = list(_marked(block, f"# Of {whose}, {comment(str(path))}:\n"))
        code = environment.compile(tree, name, str(path))
        made: jinja2.Template = environment.template_class.from_code(
            environment, code, globals or {}, lambda: path.stat().st_mtime_ns == changed
        )
        return made


def _check_overlay(tree: nodes.Template, path: Path, known: tuple[str, ...]) -> None:
    """Refuse an overlay that extends nothing, blocks that no template has, and text outside of blocks."""
    blocks = ", ".join(known)
    first, *rest = [node for node in tree.body if not _is_blank(node)] or [nodes.Output([], lineno=1)]
    if not (isinstance(first, nodes.Extends) and first.template == nodes.Const(OVERLAY)):
        raise BadInputError.case("overlay: extends", path=path, first=first, name=OVERLAY)
    for node in rest:
        if not isinstance(node, nodes.Block | nodes.Macro | nodes.Assign | nodes.AssignBlock):
            raise BadInputError.case("overlay: in no block", path=path, node=node, blocks=blocks)
    for block in tree.find_all(nodes.Block):
        _check_name(block, path, known, blocks)


def _check_name(block: nodes.Block, path: Path, known: tuple[str, ...], blocks: str) -> None:
    if block.name not in known:
        from difflib import get_close_matches  # only messages need it

        near = "".join(f"; did you mean {name}?" for name in get_close_matches(block.name, known, n=1))
        raise BadInputError.case("overlay: no block", path=path, block=block, near=near, blocks=blocks)


def _is_blank(node: nodes.Node) -> bool:
    parts = node.nodes if isinstance(node, nodes.Output) else [node]
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in parts)


def _marked(block: nodes.Block, mark: str) -> Iterator[nodes.Node]:
    """Yield what is in a block of an overlay, in whole lines and with a comment before what it adds."""
    parts = _parts(block)
    marked = False
    for part in parts:
        if _is_super(part):
            marked = False
        elif not marked and not _is_blank(part):
            yield _data(mark, part.lineno)
            marked = True
        yield part if isinstance(part, nodes.Stmt) else nodes.Output([part], lineno=part.lineno)
    if not all(map(_ends_line, parts[-1:])):
        yield _data("\n", block.lineno)


def _parts(block: nodes.Block) -> list[nodes.Node]:
    """Return what is in a block; what is below has ended its last line, so the end of that line goes."""
    parts = [one for node in block.body for one in (node.nodes if isinstance(node, nodes.Output) else [node])]
    for before, part in pairwise(parts):
        if _is_super(before) and isinstance(part, nodes.TemplateData):
            part.data = part.data.removeprefix("\n")
    return parts


def _is_super(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name == "super"


def _ends_line(node: nodes.Node) -> bool:
    if isinstance(node, nodes.TemplateData):
        return not node.data or node.data.endswith("\n")
    return isinstance(node, nodes.Stmt) or _is_super(node)


def _data(text: str, line: int) -> nodes.Output:
    return nodes.Output([nodes.TemplateData(text)], lineno=line)


def block_text(path: Path) -> str:
    """Return the shell lines of a centre's block, which bash can read on their own. Raises BadInputError."""
    text = _text(path).rstrip("\n") + "\n"
    said = _not_bash(text)
    if said or text.endswith("\\\n"):
        # It would swallow the lines after it.
        raise BadInputError(f"{path}: {said or 'its last line goes on'}", "end what it begins")
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: {error}", "lines in UTF-8") from error


def _not_bash(text: str) -> str:
    """Return why bash cannot read a text; empty where it can."""
    check = ("env", "-u", "BASH_ENV", "LC_ALL=C", "bash", "-n")
    return LocalHost().run(check, stdin=text.encode(), timeout_s=10).stderr.strip()


def comment(text: str) -> str:
    """Make a text safe inside one comment line: no line break may end it, no mark may change its look."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
