"""A foreign launch, each of its words in one place: before the launcher, an option, or a program's."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from typing import NamedTuple

from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import WORDS, Value, Values, texts_of
from hpclaunch.shell import launcher_options
from hpclaunch.shell.launcher_options import LAUNCHER_OPTIONS, LIST_OPTIONS, Size, continues_list, read_option
from hpclaunch.shell.shell_syntax import Part, Word


class LaunchOption(NamedTuple):
    """An option of a launcher."""

    name: str
    value: str | None
    line: int

    def sizes(self, launcher: str) -> dict[Size, int | None]:
        """Return the sizes that the option states; None: the number cannot be read."""
        known, value = LAUNCHER_OPTIONS.get(launcher), (self.value or "").strip()
        if self.name == "map-by" and (
            ranks := re.match(r"(?i)ppr:(?:(\d+):node\b)?(?:.*\bpe=(\d+))?", value)
        ):
            found: dict[Size, int | None] = {"tasks per node": int(ranks[1]) if ranks[1] else None}
            return {**found, "cpus": int(ranks[2])} if ranks[2] else found
        size = known.sizes.get(self.name) if known else None
        if size is None:
            return {}
        count = re.fullmatch(r"(?:[A-Za-z][\w.-]*:){0,2}(\d{1,9})", value)  # 8, and of GPUs a100:8 and gpu:8
        return {size: int(count[1]) or None if count else None}


@dataclass
class ReadLaunch:
    """A launch line, its variables replaced as far as they are known."""

    launch: Launch
    options: list[LaunchOption]
    shell: list[Value]
    program: list[Value]
    others: list[Value]

    @cached_property
    def before(self) -> str:
        """The words before a launcher, such as ``timeout 3500``, that do more than start it."""
        words = [word.visible for word in self.launch.command.words]
        is_it = re.compile(rf"(.*/)?({self.launch.launcher}|mpi(run|exec)\S*)")
        at = next((at for at, word in enumerate(words) if is_it.fullmatch(word)), 0)
        other = self.launch.launcher in LAUNCHER_OPTIONS and words[0] not in WORDS["wrappers"]
        return " ".join(words[:at]) if other else ""

    @cached_property
    def asked(self) -> dict[Size, int | None]:
        """The sizes that the options state; None: the number cannot be read. The last number holds."""
        given = [one.sizes(self.launch.launcher) for one in self.options]
        found: dict[Size, int | None] = {size: None for one in given for size in one}
        return found | {size: count for one in given for size, count in one.items() if count}

    @cached_property
    def sizes(self) -> dict[Size, int]:
        """The sizes that the options state and that can be read, with those that follow from them."""
        found = {size: count for size, count in self.asked.items() if count}
        if sets := found.pop("sets", None):  # jsrun: resource sets, each with this number of ranks and GPUs
            per_set = found.pop("tasks per node", 1)
            found["tasks"] = sets * per_set
            if per_host := found.pop("sets per node", None):
                found["nodes"] = -(-sets // per_host)
            if each := found.pop("gpus per task", None):
                found["gpus"] = sets * each
        return found


def read_launch(launch: Launch, values: Values) -> ReadLaunch:
    """Return a launch with its words in their places; it is read once."""
    found: ReadLaunch | None = values.launches.get(id(launch))
    if found is None:
        options, words = _options_and_words(launch, values)
        start, end = _program_in(launch, words, values)
        found = ReadLaunch(launch, options, words[:start], words[start:end], words[end:])
        values.launches[id(launch)] = found
    return found


def _program_in(launch: Launch, words: list[Value], values: Values) -> tuple[int, int]:
    """Return where the first program begins in the words behind the options, and where it ends."""
    raw = [one.origin.raw if one.origin else "" for one in words]
    several = launch.launcher in ("srun", "mpiexec", "aprun")
    end = raw.index(":") if several and ":" in raw else len(words)
    texts = [(one.origin.text or "") if one.origin else "" for one in words[:4]]
    return 4 if values.own and texts == WORDS["own shell"] else 0, end


def _options_and_words(launch: Launch, values: Values) -> tuple[list[LaunchOption], list[Value]]:
    if launch.launcher not in LAUNCHER_OPTIONS:
        return _other_launcher(launch, values)
    words, at = _after_launcher(launch, values), 0
    options: list[LaunchOption] = []
    while at < len(words) and words[at].text.startswith("-") and words[at].text not in ("-", "--"):
        option, taken = _read_one(words[at : at + 3], launch.launcher)
        options.append(option)
        at += taken
        is_list = option.name in LIST_OPTIONS  # which blanks may tear
        while is_list and at < len(words) and continues_list(words[at - 1].text, words[at].text):
            at += 1
    return options, words[at + (texts_of(words[at : at + 1]) == ["--"]) :]


def _other_launcher(launch: Launch, values: Values) -> tuple[list[LaunchOption], list[Value]]:
    """Read a launch without a table of options: no launcher at all, one that reads all words, or ibrun.

    Wrappers such as ``timeout`` and ``uv run`` stay before the first two.
    """
    if not launch.by_launcher or launch.launcher in WORDS["read elsewhere"]:
        return [], values.words_of(launch.command.words)
    first = launch.command.words[0]
    options = [LaunchOption(one.name, None, (one.value or first).line) for one in launch.options]
    return options, values.words_of(launch.program)


def _after_launcher(launch: Launch, values: Values) -> list[Value]:
    """Return what follows the launcher, whose name may be in a variable."""
    words = values.words_of(word for word in launch.command.words if word not in launch.unread)
    verbs = LAUNCHER_OPTIONS[launch.launcher].verbs
    for number, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        if name == launch.launcher or (launch.launcher == "mpiexec" and name.startswith("mpi")):
            return list(dropwhile(lambda word: word.text in verbs, words[number + 1 :]))
    return values.words_of(launch.program)


def _read_one(rest: list[Value], launcher: str) -> tuple[LaunchOption, int]:
    """Read the option at the beginning of some words; return it and how many words it takes."""
    first, shown = rest[0], rest[0].text
    words = [Word(one.text, -1, -1, 0, (Part("text", one.text),)) for one in rest]
    name, holder, prefix, taken = read_option(launcher, words)
    value = None
    if holder is words[0]:
        value = shown[prefix:] if first.plain is not None else None
    elif holder is not None:
        value = rest[words.index(holder)].plain
        if name in launcher_options.MPIEXEC.pairs and taken == 3:
            pair = [one.plain for one in rest[1:]]
            value = None if None in pair else "=".join(map(str, pair))
    return LaunchOption(name, value, first.origin.line if first.origin else 0), taken
