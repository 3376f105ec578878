"""The options of a job's settings: their declaration, their help, and how their words are read.

A habit from another tool, or a word on the wrong side of the program, is answered before click takes it
otherwise.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

import click

from hpclaunch.cli._options import complete_site
from hpclaunch.cli.main import TABLE
from hpclaunch.errors import HpclaunchError, note_text
from hpclaunch.plan.settings_table import Row, rows

if TYPE_CHECKING:
    from hpclaunch.plan.settings import JobSettings

    _Names = click.Choice[str]
else:
    _Names = click.Choice


def _help_all(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_ALL = "hpclaunch.help-all"
_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help_all,
    help="Show all options and exit.",
)


class SettingsCommand(click.Command):
    """A command with the options of a job's settings; its help is grouped."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` where ``--help`` shows only some of them."""
        *found, usual = super().get_params(ctx)
        return [*found, *([_HELP_ALL] if _short_help(ctx) else []), usual]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: the usual ones, or all in groups, the settings as their table groups them."""
        if (usual := _short_help(ctx)) and not ctx.meta.get(_ALL):
            self._format_usual(ctx, formatter, usual)
            return
        titles = {row.name: row.group for row in rows()}
        titles["file"] = titles["site"]
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
                groups.setdefault(titles.get(option.name or "", "Submission"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def _format_usual(self, ctx: click.Context, formatter: click.HelpFormatter, usual: list[str]) -> None:
        """Write these options and those of the help, of each the first sentence."""
        *found, help_all, own = self.get_params(ctx)
        shown = [*(option for option in found if option.name in usual), help_all, own]
        records = filter(None, (option.get_help_record(ctx) for option in shown))
        with formatter.section("Usual options"):
            formatter.write_dl(
                [(words, f"{text} ".partition(". ")[0].rstrip(". ") + ".") for words, text in records]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; what another tool's users type is refused with the words of ours."""
        given = tuple(args)  # the parser empties the list
        check_typed(self, ctx, given)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            if told := foreign_option(self, ctx, given):
                raise click.UsageError(told, ctx) from None
            raise


def _short_help(ctx: click.Context) -> list[str]:
    """Return the names of the options that ``--help`` of this command shows; none: it shows all."""
    names: list[str] = TABLE["short help"].get(ctx.command_path.partition(" ")[2], [])
    return names


class SubmitCommand(SettingsCommand):
    """A command that takes a program: what is after the first ``--``, or a file such as train.py.

    A file ends the options: the words after it are the program's. The first ``--`` is not one of them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the program's words into ``ctx.meta["tail"]``; parse the rest."""
        tail, words = list[str](), args
        if "--" in args:
            at = args.index("--")
            words, tail = args[:at], args[at + 1 :]
        at = self._file_at(ctx, words)
        if at < len(words):
            self._refuse_own_options(ctx, words, at)
            ctx.meta["is_file"] = True
        ctx.meta["tail"] = (*words[at:], *tail)
        ctx.allow_extra_args = True
        try:
            super().parse_args(ctx, words[:at])
        except click.NoSuchOption as error:
            # It may be the program's option.
            named = bool(words) and not words[0].startswith("-")
            start = "mnist " if "mnist" in words else ""
            if error.possibilities and not (named or start):
                raise
            what = "options of the training" if start else "a program and its options"
            hint = f"{what} come after --: hpclaunch submit {start}-- {error.option_name} ..."
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None
        _refuse_words(ctx)
        return []

    def _file_at(self, ctx: click.Context, words: list[str]) -> int:
        """Return the position of a file that Python or a shell reads, if the first argument is one."""
        if not any("." in word for word in words):
            return len(words)
        from hpclaunch.plan.script_commands import is_script_name

        if not any(map(is_script_name, words)):
            return len(words)
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            found, behind, _ = parser.parse_args(list(words))
        except click.UsageError:  # which the parser of all words reports
            return len(words)
        job = found.get("job")
        is_file = isinstance(job, str) and is_script_name(job)
        return len(words) - len(behind) - 1 if is_file else len(words)

    def _refuse_own_options(self, ctx: click.Context, words: list[str], at: int) -> None:
        """Raise UsageError with both spellings where options of ours stand after the file."""
        ours, theirs = own_words(self.get_params(ctx), words[at + 1 :])
        if not ours:
            return
        file, named = words[at], ours[0].partition("=")[0]
        front = "python" if file.endswith(".py") else "bash"
        own = shlex.join([*words[:at], *ours, file, *theirs])
        raise click.UsageError(
            f"{named} stands after {file}: is it meant for hpclaunch or for the program?\n"
            f"for hpclaunch: {ctx.command_path} {own}\n"
            f"for the program: {ctx.command_path} {shlex.join([*words[:at], '--', front, *words[at:]])}",
            ctx,
        )


def _refuse_words(ctx: click.Context) -> None:
    """Raise UsageError for words in front of ``--`` that are neither options nor a job."""
    words = [word for word in (ctx.params.get("job"), *ctx.args) if word]
    if words and (name := words[0].lstrip("\u2010\u2011\u2012\u2013\u2014\u2212")) != words[0]:
        raise click.UsageError(f"{words[0]} begins with a dash of a text program: type --{name}", ctx)
    if ctx.args:
        begin = " ".join((*(words[:1] if words[0] == "mnist" else ()), "--"))
        rest = shlex.join(words[1:] if words[0] == "mnist" else words)
        raise click.UsageError(note_text("submit: words", rest=rest, begin=begin), ctx)


class _Choice(_Names):
    """One of some names, in any case; of another one it says which it may be."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as the table has it; raises BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from difflib import get_close_matches  # only messages need it

            near = get_close_matches(str(value).lower(), [str(name) for name in self.choices], n=1)
            if not near:
                raise
            words = f"{error.message} Did you mean {near[0]}?"
            raise click.BadParameter(words, param=param, ctx=ctx) from None


def _option(row: Row) -> click.Option:
    """Return the option of a setting; its value is None or () where it is left out."""
    name, kind = row.name.replace("_", "-"), row.kind
    usual, form = f"--{name}/--no-{name}" if kind is bool else f"--{name}", get_origin(kind)
    values: Any = click.IntRange(*row.limits) if row.limits else kind if kind in (int, float) else None
    return click.Option(
        [*(row.options or (usual,)), row.name],
        type=_Choice(get_args(kind)) if form is Literal else values,
        is_flag=kind is bool,
        default=None,
        multiple=form in (tuple, dict) and not row.commas,
        callback=_split if row.commas else _pairs if form is dict else None,
        metavar=row.metavar,
        help=row.help,
        shell_complete=complete_site if row.name == "site" else None,
    )


def _split(_ctx: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Split at commas and blanks, but not inside of ``n[1,3-5]``. Raises BadParameter for an empty text."""
    if value == "":
        raise click.BadParameter("it is empty")
    return tuple(filter(None, re.split(r"[,\s]+(?![^\[\]]*\])", value or "")))


def _pairs(_ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """Return NAME=VALUE texts as a mapping; of two with the same name the last one counts."""
    pairs = dict[str, str]()
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param=option)
        pairs[name] = value
    return pairs or None


def setting_options(leave_out: tuple[str, ...] = ()) -> list[click.Parameter]:
    """Return the options of all settings that have one."""
    return [_option(row) for row in rows() if row.group and row.name not in leave_out]


def command_words(job: str | None, tail: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a job: the bundled training with its options, or what is after the ``--``."""
    if job not in (None, "mnist"):
        raise click.UsageError(note_text("submit: unknown job", job=job))
    return ("mnist", *tail) if job else tail


def given_settings(options: dict[str, Any], **more: Any) -> "JobSettings":
    """Return the settings of the options that were given."""
    from hpclaunch.plan.settings import JobSettings

    given = {name: value for name, value in options.items() if value not in (None, ())}
    return JobSettings(**given, **more)


class TypedOption(NamedTuple):
    """One option of a command line."""

    word: str
    """As typed, with a value that is part of the word."""
    name: str
    """``--nodes``, ``-N``."""
    value: str
    """Empty: it has none."""
    option: click.Option | None
    """None: the command has no such option."""
    following: str | None
    """The word behind ``word``."""


_ONE_OF_A_KIND = frozenset({"container", "container_runtime", "venv", "conda", "software"})


def typed_options(options: Sequence[click.Parameter], words: Sequence[str]) -> Iterator[TypedOption]:
    """Yield the options among the words in front of ``--``, as click reads them; never raises.

    Whether the word behind an unknown option is its value is not known, so nothing is yielded behind one.
    """
    known = _by_words(options)
    rest = list(words[: words.index("--")] if "--" in words else words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and word != "-":
            yield (each := _typed(word, rest, known))
            if each.option is None:
                return


def own_words(options: Sequence[click.Parameter], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into options of these with their values, and the rest."""
    known, waiting = _by_words(options), list(words)
    ours, rest = list[str](), list[str]()
    while waiting:
        left = [*waiting]
        each = _typed(waiting.pop(0), waiting, known)
        (rest if each.option is None else ours).extend(left[: len(left) - len(waiting)])
    return ours, rest


def _by_words(options: Sequence[click.Parameter]) -> dict[str, click.Option]:
    found = (option for option in options if isinstance(option, click.Option))
    return {name: option for option in found for name in (*option.opts, *option.secondary_opts)}


def _typed(word: str, rest: list[str], known: Mapping[str, click.Option]) -> TypedOption:
    """Read one option, with its value from ``rest``, out of which it is taken."""
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    option, following = known.get(name), rest[0] if rest else None
    if option is not None and following is not None and not (option.is_flag or equals):
        value = rest.pop(0)
    return TypedOption(word, name, value, option, following)


def check_typed(command: click.Command, ctx: click.Context, words: Sequence[str]) -> None:
    """Refuse a letter that is meant as another tool has it, one dash for two, two images or environments."""
    seen: dict[str, str] = {}
    typed = list(typed_options(options := command.get_params(ctx), words))
    known = {f"-{name}" for option in options for name in option.opts if name.startswith("--")}
    for each in typed:
        long = f"-{each.word.partition('=')[0]}"
        if said := f"{each.word}: did you mean {long}?" if f"-{long}" in known else _misread(each, typed):
            raise click.UsageError(said, ctx)
        key = each.option.name if each.option else None
        if key in _ONE_OF_A_KIND and seen.setdefault(key, each.value) != each.value:
            raise click.UsageError(f"{each.name} is given twice, {seen[key]} and {each.value}: take one", ctx)


def _misread(each: TypedOption, typed: Sequence[TypedOption]) -> str | None:
    for letter, pattern, kinds, say in TABLE["misread"]:
        meant = each.name == letter and re.fullmatch(pattern, each.value)
        if meant and (not kinds or _site_kind(typed) in kinds):
            return str(say.format(value=shlex.quote(each.value)))
    return None


def foreign_option(command: click.Command, ctx: click.Context, words: Sequence[str]) -> str | None:
    """Return what to type instead of the first unknown option, where another tool has it."""
    typed = list(typed_options(command.get_params(ctx), words))
    if not typed or typed[-1].option is not None or "mnist" in words[: words.index(typed[-1].word)]:
        return None
    from hpclaunch.plan.foreign_options import explain  # refusals only: it loads all schedulers

    unknown = typed[-1]
    value = unknown.following
    more = () if value is None or (value.startswith("-") and len(value) > 1) else (value,)
    told = explain((unknown.word, *more), _site_kind(typed))
    return "\n".join((f"No such option: {unknown.name}", *told)) if told else None


def _site_kind(typed: Sequence[TypedOption]) -> str | None:
    """Return the scheduler of the site that is named here or in the configuration; None: none can be read."""
    from hpclaunch.job.settings_files import read_layers
    from hpclaunch.plan.settings import JobSettings, highest
    from hpclaunch.site.load_profile import load_site

    named = {each.name: each.value for each in typed}
    file = named.get("--file")
    try:
        layers = read_layers(JobSettings(site=named.get("--site") or None), Path(file) if file else None)
        layer = highest(layers, "site")
        return load_site(layer.settings.site).scheduler.kind if layer else None
    except (HpclaunchError, OSError):
        return None
