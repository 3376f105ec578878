"""The labels by which launchers and frameworks say which rank wrote a line."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import filterfalse, pairwise

from hpclaunch.failures.known_errors import each_of, launchers_own, log_words

_SHARE = 0.5
"""The least share of lines with a launcher's label in a log with labels."""


class RankLines:
    """Passes the lines of one rank on, without their labels; output may come in pieces."""

    def __init__(self, rank: int, on_output: Callable[[bytes], None]) -> None:
        self._rank, self._on_output, self._rest = rank, on_output, b""
        self._labels = [re.compile(label.pattern.encode()) for label in each_of("rank_labels")]
        self.ranks = set[int]()
        """The ranks that lines have named."""

    def __call__(self, data: bytes) -> None:
        """Take a piece of the log."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Take what is left, a line without an end."""
        if self._rest:
            self(b"\n")

    def _take(self, line: bytes) -> None:
        for label in self._labels:
            if match := label.match(line):
                self.ranks.add(int(match[1]))
                if int(match[1]) == self._rank:
                    self._on_output(line[match.end() :] + b"\n")
                return


def by_rank(lines: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return each line's rank, or the label of its process, and its text; None where nothing names either.

    A launcher's label is one only where half of the lines or more have it, its reports aside: "3: x" may be
    a program's own. Of labels that no program writes, "[1,0]<stderr>:", two will do. A number that counts
    nodes, or the ranks of one of them, is the label of a process.
    """
    plain = [log_words("before_labels").sub("", line) for line in lines]
    label = _label_of(plain)
    found = [_split(line, label) for line in plain]
    of_nodes = _counts_nodes(label, found)
    labelled = (
        (own or (f"node {outer}" if of_nodes and (outer or "").isdigit() else outer), text)
        for outer, own, text in found
    )
    return list(_continued(labelled))


def with_labels(lines: Sequence[str], ranks: int) -> tuple[str, ...]:
    """Return the lines with a label in place of the number that a program itself wrote as that of its rank.

    It is one where no launcher's label tells the rank, and either it stands in brackets after other words in
    half of the lines or more, where 0 to N-1 take turns, or in a form that names ranks; see `_names_ranks`.
    ``ranks`` is N, or 0.
    """
    label = _label_of([*map(partial(log_words("before_labels").sub, ""), lines)])
    if label and label.groups:
        return tuple(lines)
    found = [log_words("number_in_a_line").match(line) for line in lines]
    numbers = [match["rank"] for match in filter(None, found)]
    turns = 2 * len(numbers) >= len([*filterfalse(launchers_own, lines)]) and _take_turns(numbers, ranks)
    found = found if turns else _of_own_forms(lines, ranks)
    return tuple(_relabelled(own) if own else line for own, line in zip(found, lines, strict=True))


def _of_own_forms(lines: Sequence[str], ranks: int) -> list[re.Match[str] | None]:
    """Return the match of each line that begins with a number in a form that names ranks."""
    forms: dict[str, list[re.Match[str]]] = {}
    found = [log_words("own_form").match(line) for line in lines]
    for match in filter(None, found):
        forms.setdefault(_form(match), []).append(match)
    usual = sum(not (launchers_own(line) or log_words("of_a_report").search(line)) for line in lines)
    sure = {form for form, of_it in forms.items() if _names_ranks(of_it, ranks, usual)}
    return [match if match and _form(match) in sure else None for match in found]


def _form(match: re.Match[str]) -> str:
    return re.sub(r"\d+", "0", match["word"])


def _names_ranks(found: Sequence[re.Match[str]], ranks: int, usual: int) -> bool:
    """Whether numbers in one form are those of ranks, all below ``ranks``.

    The form says so by its word or by the number of all after its own, or half of the usual lines have it
    and 0 to N-1 take turns.
    """
    numbers = [str(int(match["rank"])) for match in found]
    if len({*numbers}) < 2 or max(map(int, numbers)) >= ranks:
        return False
    counts = numbers == sorted(numbers, key=int)  # what is done: 1/4 files, 2/4 files
    of_all = not counts and {match["of"] for match in found} == {str(ranks)}
    by_word = all(log_words("names_a_rank").search(match["word"]) for match in found)
    return by_word or of_all or (2 * len(found) >= usual and _take_turns(numbers, ranks))


def _take_turns(numbers: Sequence[str], ranks: int) -> bool:
    """Whether numbers are those of ranks that write at the same time, and not of a loop of one process.

    Each comes twice or more, and none ends before all have begun; in a loop all but one follow in order.
    """
    all_of = [str(number) for number in range(ranks or len({*numbers}))]
    if len(all_of) < 2 or {*numbers} != {*all_of}:
        return False
    jumps = sum((int(one) + 1) % len(all_of) != int(other) for one, other in pairwise(numbers))
    begun = max(map(numbers.index, all_of))
    return jumps > 1 and all(numbers.count(one) > 1 and one in numbers[begun:] for one in all_of)


def _relabelled(match: re.Match[str]) -> str:
    """Return a line with a label of a rank; that of its process stays before it."""
    before, label, text = match["before"], f"[rank{int(match['rank'])}]: ", match["text"] or ""
    if before == "Process ":  # multiprocessing's name of a process before its traceback
        return label + match.string
    outer = any(process.fullmatch(before) for process in each_of("process_labels"))
    return before + label + text if outer else label + before + text


def _continued(lines: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str | None, str]]:
    """Yield the lines, those of a traceback without labels with the one that a logger put before it."""
    owner = None
    for label, text in lines:
        of_another = text.strip() and launchers_own(text)
        if label or of_another or not log_words("of_a_report").search(text):
            owner = label if log_words("announces_a_traceback").search(text) else None
        yield label or owner, text


def _counts_nodes(label: re.Pattern[str] | None, found: Iterable[tuple[str | None, str | None, str]]) -> bool:
    """Whether the numbers of a label are those of nodes, or of the ranks of one node."""
    local = label is not None and "default" in label.pattern
    agent = log_words("of_an_agent_elsewhere" if local else "of_an_agent")
    return any(agent.match(text) for outer, _, text in found if outer or local)


def _label_of(lines: Iterable[str]) -> re.Pattern[str] | None:
    full = [line for line in lines if not launchers_own(line)]
    kinds = ("rank_labels", "rank_labels_at_best", "process_labels")
    counts = {label: _count(label, full) for kind in kinds for label in each_of(kind)}
    best = max(counts, key=lambda label: counts[label])
    least = 0 if log_words("parts_of_sure_labels").search(best.pattern) else _SHARE * _stretch(best, full)
    # The only line may have a label of a launcher; with words it may be a program's.
    alone = len(full) == 1 and not re.search("[a-z]{2}", best.pattern)
    return best if counts[best] >= max(1 if alone else 2, least) else None


def _stretch(label: re.Pattern[str], lines: Sequence[str]) -> int:
    """Return how many lines there are from the first to the last one with a label.

    Scripts write before and after a step, whose ranks write more than a line each; else all lines count.
    """
    found = [(at, match[label.groups]) for at, line in enumerate(lines) if (match := label.match(line))]
    ranks = {rank for _, rank in found}
    return found[-1][0] + 1 - found[0][0] if 1 < len(ranks) <= len(found) / 2 else len(lines)


def _count(label: re.Pattern[str], lines: Iterable[str]) -> int:
    """Return how many lines have a label; that of a process repeats, so that "epoch1: " is none."""
    found = [match[0].rstrip() for match in map(label.match, lines) if match]
    return len(found) if label.groups or 3 * len(set(found)) <= len(found) else 0


def _split(line: str, label: re.Pattern[str] | None) -> tuple[str | None, str | None, str]:
    outer = own = None
    if label and (match := label.match(line)):
        outer, line = match[label.groups].rstrip(), line[match.end() :]
        outer = str(int(outer)) if outer.isdecimal() else outer
        line = line.removeprefix(f"[{outer}] ")  # the program's own
    for _ in range(2):  # torchrun's, and PyTorch's after it
        if (match := log_words("labels_of_frameworks").match(line)) and (outer or not match[3]):
            own, line = match[1] or match[2] or f"{outer} {match[3]}", line[match.end() :]
    return outer, own, line
