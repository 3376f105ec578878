"""Options as they are typed: what a habit from another tool means here, before click takes it otherwise."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from hpclaunch.cli.main import TABLE
from hpclaunch.errors import HpclaunchError


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
