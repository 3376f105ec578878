"""The bind lists of a script: CPU masks and maps, as written and as meant."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice

from hpclaunch.binding.judge_masks import Judgement, Kind, judge
from hpclaunch.cpuset import parse_cpu_list, to_mask
from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import Script, value_word
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import Launch, Option
from hpclaunch.lint.lint_rule import Context
from hpclaunch.lint.shell_variables import Expansion, Variables
from hpclaunch.shell.shell_syntax import Assignment, Ref, Word
from hpclaunch.topology.node_topology import Core, NodeTopology

_LIST_NAME = re.compile(r".*mask.*|.*map_?cpus?|.*cpu_?(bind|map).*|.*bind.*", re.IGNORECASE)
_LIST_TEXT = re.compile(r"\s*(0x|mask_cpu:|map_cpu:)", re.IGNORECASE)
_HAS_ENTRIES = re.compile(r"\d.*[,:]|0x")


@dataclass(frozen=True)
class BindList:
    """One list for the ranks of one node."""

    line: int
    kind: Kind
    text: str
    """Entries separated by commas, without spaces; unset variables have the value that was meant."""
    ranks: int | None
    """Ranks per node; None: not known."""


def bind_option(launch: Launch) -> Option | None:
    """Return the option of a launch that binds CPUs."""
    return launch.option("cpu-bind", "cpu_bind")


def _list_words(script: Script) -> Iterator[Word]:
    """Yield each word that has a bind list in it, or is assigned to a variable with the name of one."""
    for launch in script.launches:
        option = bind_option(launch)
        if option is not None and option.value is not None:
            yield value_word(option)
    for made in script.variables.assignments.values():
        for one in made:
            if one.value is not None and is_list(one):
                yield one.value


def is_list(one: Assignment) -> bool:
    """Tell whether an assignment looks like one of a bind list."""
    value = one.value.visible if one.value else ""
    several = "," in value and _LIST_TEXT.match(value) is not None
    return several or (_LIST_NAME.fullmatch(one.name) is not None and _LIST_TEXT.match(value) is not None)


@lru_cache(maxsize=1)  # several rules need it for the same script
def unset_in_lists(script: Script) -> dict[str, list[Ref]]:
    """Return the variables in bind lists that nothing sets, with their uses."""
    refs = [ref for ref in script.shell.refs if not ref.guarded]
    found: dict[str, dict[Ref, None]] = {}
    for word in _list_words(script):
        for ref in _unset_in(word, script.variables.expand(word), refs):
            found.setdefault(ref.name, {})[ref] = None
    return {name: list(used) for name, used in found.items()}


def _unset_in(word: Word, expanded: Expansion, refs: list[Ref]) -> Iterator[Ref]:
    """Yield the uses of unset variables in a word and in the assignments that its value went through."""
    assigned = [(made.offset, made.value.end) for made in expanded.via if made.value]
    spans = [(word.start, word.end), *assigned]
    for ref in refs if expanded.unset else ():
        if ref.name in expanded.unset and any(start <= ref.offset < end for start, end in spans):
            yield ref


@lru_cache(maxsize=1)
def mismatches(script: Script) -> dict[str, tuple[Ref, Assignment]]:
    """Return variables that nothing sets -> (use, assignment of the variable that was probably meant)."""
    unused = unused_assignments(script.variables)
    in_lists, elsewhere = unset_in_lists(script), script.variables.sources_unknown
    found: dict[str, tuple[Ref, Assignment]] = {}
    for ref in islice(script.unset_uses(longer_than=2), TABLE["most_names"]):
        meant = (one for one in unused if ref.name in in_lists or not (one.exported or elsewhere))
        candidates = [one for one in meant if not _made_of(script, one, ref.name)]
        likest = max(candidates, key=lambda one: _likeness(ref.name, one.name), default=None)
        if likest is not None and _likeness(ref.name, likest.name) >= TABLE["alike"]:
            found[ref.name] = (ref, likest)
    return found


def _made_of(script: Script, one: Assignment, name: str) -> bool:
    """Tell whether a value of the assigned variable is made of the variable that nothing sets."""
    made = script.variables.all_assignments(one.name)
    return any(
        (part.kind == "variable" and part.text == name) or name in part.operator
        for each in made
        for part in (each.value.parts if each.value else ())
    )


def unused_assignments(variables: Variables) -> list[Assignment]:
    """Return the last assignment of each variable that nothing uses."""
    last = [made[-1] for name, made in variables.assignments.items() if name not in variables.used]
    return [one for one in last if one.value is not None and len(one.name) > 2][: TABLE["most_names"]]


def _likeness(one: str, other: str) -> float:
    a, b = one.lower().replace("_", ""), other.lower().replace("_", "")
    if min(len(a), len(b)) >= 4 and (a in b or b in a):
        return 0.9
    return SequenceMatcher(None, a, b).ratio() if max(len(a), len(b)) <= 60 else 0.0


@lru_cache(maxsize=1)
def bind_lists(context: Context) -> list[BindList]:
    """Return the lists of all launches whose text is known."""
    # What unset variables probably mean: ${fe} is fe, $MYMASKS is MASK.
    variables = context.script.variables
    for name in unset_in_lists(context.script):
        if re.fullmatch(r"[0-9a-fA-F]{1,4}", name):
            variables.meant[name] = name
    for name, (_, one) in mismatches(context.script).items():
        meant = variables.expand(one.value, meant=True).text if one.value else None
        if meant is not None:
            variables.meant[name] = meant
    found = [*_lists_of_options(context)]
    for one in variables.all_assignments("SLURM_CPU_BIND"):  # srun reads it like its --cpu-bind
        text = variables.expand(one.value, meant=True).text if one.value else None
        if entry := _bind_list(text, one.line, context.requested.ranks_per_node):
            found.append(entry)
    return found


def _lists_of_options(context: Context) -> Iterator[BindList]:
    script = context.script
    for launch in script.launches:
        option = bind_option(launch)
        if option is None or option.value is None:
            continue
        expanded = script.value(option, meant=True)
        known = script.variables.meant.keys() >= set(expanded.unset)
        made = (one for one in expanded.via if one.value and _HAS_ENTRIES.search(one.value.visible))
        line = next((one.line for one in made), option.line)  # of the assignment that has the list
        if known and (entry := _bind_list(expanded.text, line, ranks_of(context, launch))):
            yield entry


def ranks_of(context: Context, launch: Launch) -> int | None:
    """Return the ranks per node of a launch; srun starts 1 where nothing gives a number (man srun, -n)."""
    given = context.requested.tasks or launch.option(*TABLE["one_task"].split())
    in_job = launch.launcher == "srun" and context.script.active_directives and not given
    one = in_job and not re.search(TABLE["gives_tasks"], context.script.text)
    return 1 if one else launch_ranks_per_node(context, launch)


def _bind_list(text: str | None, line: int, ranks: int | None) -> BindList | None:
    """Read ``mask_cpu:...``, ``map_cpu:...`` or PALS' ``list:...``; None for any other text."""
    text = re.sub(r"[\s'\"]+", "", text or "")
    if match := re.fullmatch(TABLE["list_of_srun"], text):
        return BindList(line, "mask" if match[1] == "mask_cpu" else "map", match[2].strip(","), ranks)
    if match := re.fullmatch(TABLE["list_of_pals"], text):
        masks = [_mask(part) for part in match[1].split(":")]
        return BindList(line, "mask", ",".join(masks), ranks)
    return None


def _mask(cpus: str) -> str:
    try:
        return to_mask(parse_cpu_list(cpus))
    except BadInputError:
        return cpus or "0x0"


def launch_ranks_per_node(context: Context, launch: Launch) -> int | None:
    """Return the ranks per node of a launch: its own number, else the job's."""
    script = context.script
    letter = ("N",) if launch.launcher == "mpiexec" else ()
    own = script.number(launch, "ntasks-per-node", "ppn", "perhost", *letter)
    total = script.number(launch, "ntasks", "n", "np")
    nodes = script.number(launch, "nodes") or context.requested.node_count
    if own is not None:
        return own
    if total is not None:
        return -(-total // nodes) if nodes else None
    counted = launch.option(*TABLE["one_task"].split()) is not None  # a number that is not known
    return None if counted else context.requested.ranks_per_node


@lru_cache(maxsize=64)  # every rule about lists needs it
def judge_list(context: Context, entry: BindList) -> Judgement:
    """Judge a list for the site's node; without a site only for contradictions in the list itself."""
    topology = context.node_topology
    if topology is None:  # a node that has every CPU of the list, up to a bound
        if entry.kind == "map":
            named = [int(number) for number in re.findall(r"\b\d{1,6}\b", entry.text)]
        else:
            named = [4 * len(digits) for digits in re.findall(r"(?:0x)?([0-9a-fA-F]+)", entry.text)]
        count = min(max(named, default=0) + 1, TABLE["cpus_without_site"])
        topology = NodeTopology(cores=tuple(Core(cpus=(cpu,)) for cpu in range(count)))
    return judge(topology, entry.kind, entry.text, tasks=entry.ranks)
