"""The ``#PBS`` lines of a batch script (man qsub, man pbs_resources)."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from hpclaunch.scheduler import directive_reader
from hpclaunch.walltime import clock_s

# Letters of options that take a value.
# Both PBS' and Torque's: qsub of PBS has no -b, -d, -D, -F, -t and refuses them by name.
_VALUED = frozenset("aAbcCdDeFGijJkKlLmMNopPqQrRStTuvwWY")
_FLAGS = frozenset("EfhInVxXz")


def _read(words: Sequence[str]) -> Iterator[directive_reader.DirectiveOption]:
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word[:1] == "-" and word[1:2] in _FLAGS and not _FLAGS.issuperset(word[1:]):
            yield directive_reader.word_option(word, rest, {})  # qsub has no -npernode
        elif re.match(r"-[A-Za-z]", word):
            yield from _option(word, rest)
        else:
            yield directive_reader.DirectiveOption("", None, word, known=False, problem="stray")


def _option(word: str, rest: deque[str]) -> Iterator[directive_reader.DirectiveOption]:
    """Read ``-q debug`` or ``-qdebug``; ``-l`` gives one option per resource."""
    letter, value = word[1], word[2:]
    if letter in _VALUED and value.startswith("="):
        yield directive_reader.DirectiveOption(letter, value[1:], word, problem="equals")
        return
    if not value and letter in _VALUED and rest:
        value = rest.popleft()
    text = f"-{letter} {value}".strip()
    if letter == "l" and value:
        yield from (
            directive_reader.DirectiveOption(f"l:{name}", amount, text) for name, amount in _resources(value)
        )
    else:
        empty = letter in _VALUED and not value
        yield directive_reader.DirectiveOption(
            letter, value or None, text, problem="empty" if empty else None
        )


def _resources(text: str) -> Iterator[tuple[str, str]]:
    """Split ``select=2:ncpus=4,walltime=1:00:00`` at the commas that begin another resource."""
    for part in re.split(r",(?=[A-Za-z_]+=)", text):
        name, _, value = part.partition("=")
        yield name.strip(), value


class _Chunk(NamedTuple):
    """One part of ``select``: how many nodes, and what each of them must have."""

    nodes: int
    resources: dict[str, str]


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    days = {"l:select", "l:place", "J"}.isdisjoint(one.name for one in directives)
    walltime = directive_reader.given_number(directives, "l:walltime", partial(pbs_time_s, days=days))
    select = directive_reader.last_directive(directives, "l:select") or directive_reader.last_directive(
        directives, "l:nodes"
    )
    if select is None:
        return directive_reader.RequestedResources(walltime_s=walltime)
    line = select.line
    chunks: list[_Chunk] = []
    for part in (select.value or "").split("+"):
        words = part.split(":")
        nodes = directive_reader.whole_number(words[0])
        resources = dict(word.split("=", 1) for word in words if "=" in word)
        chunks.append(_Chunk(1 if nodes is None else nodes, resources))

    def of_first_chunk(*names: str) -> directive_reader.Given | None:
        for name in names:
            value = directive_reader.whole_number(chunks[0].resources.get(name))
            if value is not None:
                return directive_reader.Given(value, line, f"{name}={value}")
        return None

    return directive_reader.RequestedResources(
        nodes=directive_reader.Given(sum(chunk.nodes for chunk in chunks), line, select.text),
        # nodes=2:ppn=8 is 2:ncpus=8:mpiprocs=8 (man pbs_resources); gpus is Torque's
        tasks_per_node=of_first_chunk("mpiprocs", "ppn"),
        cpus_per_node=of_first_chunk("ncpus", "ppn"),
        gpus_per_node=of_first_chunk("ngpus", "gpus"),
        walltime_s=walltime,
    )


def pbs_time_s(text: str, *, days: bool = False) -> int | None:
    """Read a time as PBS does (man pbs_resources): seconds, M:S or H:M:S.

    ``days``: also D:H:M:S, which TORQUE 2.5 to 6.1 reads, and OpenPBS 18 to 23 refuses (decode_time of both).
    """
    pattern = r"(?:(?:(?:(?P<d>\d{1,6}):)?(?P<h>\d{1,6}):)?(?P<m>\d{1,6}):)?(?P<s>\d{1,9})(?:\.\d+)?"
    return clock_s(pattern, text) if days or text.count(":") < 3 else None


_SIZE = re.compile(r"(\d+)([kmgtp]?)([bw]?)", re.IGNORECASE)


def pbs_bytes(size: object) -> int | None:
    """Read a size as PBS does (man pbs_resources); a word (w) has 8 bytes. None: it is none."""
    match = _SIZE.fullmatch(str(size))
    if match is None:
        return None
    number = int(match[1]) << 10 * " kmgtp".index(match[2].lower() or " ")
    return number * 8 if match[3].lower() == "w" else number


DIRECTIVES = directive_reader.DirectiveReader(
    **directive_reader.DirectiveReader.facts("pbs"), read=_read, requested=_requested
)
