"""The ``#$`` lines of a batch script for Grid Engine (qsub -help and answers of the real qsub of 8.1.9)."""

from collections.abc import Iterator, Sequence

from hpclaunch.package_data import package_patterns
from hpclaunch.scheduler import directive_reader
from hpclaunch.scheduler.pbs.pbs_directives import pbs_time_s

_VALUES = directive_reader.word_counts("sge")  # -g is of Univa Grid Engine, as ABCI had it
_FORM = package_patterns("scheduler/forms.json", "sge")


def _read(words: Sequence[str]) -> Iterator[directive_reader.DirectiveOption]:
    """Read the options; ``-l`` gives one option per resource."""
    for option in directive_reader.word_options(words, _VALUES):
        if option.name == "l" and option.value:
            for part in option.value.split(","):
                name, _, value = part.partition("=")
                yield directive_reader.DirectiveOption(f"l:{name.strip()}", value, option.text)
        else:
            yield option


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    walltime = directive_reader.given_number(
        directives, "l:h_rt", lambda text: pbs_time_s(_FORM.left_out.sub("0", text))
    )
    slots = directive_reader.given_number(directives, "pe", _slots)
    if slots and _FORM.on_one_host.match(slots.text):  # perhaps ranks, perhaps threads of one process
        return directive_reader.RequestedResources(
            nodes=slots._replace(value=1), cpus_per_node=slots, walltime_s=walltime
        )
    # A resource is one of each slot, and a job without -pe has one slot (man sge_pe, man complex).
    found = (directive_reader.given_number(directives, f"l:{name}") for name in ("gpu", "ngpus", "num_gpu"))
    gpus = None if slots else next(filter(None, found), None)
    return directive_reader.RequestedResources(tasks=slots, gpus=gpus, walltime_s=walltime)


def _slots(text: str) -> int | None:
    """Read the slots of ``mpi 8`` or ``mpi 4-8``; the higher number counts."""
    return directive_reader.whole_number(text.split()[-1].split("-")[-1]) if text.split() else None


DIRECTIVES = directive_reader.DirectiveReader(
    **directive_reader.DirectiveReader.facts("sge"),
    read=_read,
    requested=_requested,
    known_options=frozenset(_VALUES),
)
