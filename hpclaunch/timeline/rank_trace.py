"""The facts about one rank after its trace was read."""

from dataclasses import dataclass, field

from hpclaunch.timeline.collective_count import Collectives
from hpclaunch.timeline.rank_steps import RankSteps


@dataclass
class RankTrace:
    """One rank: its steps and collectives."""

    rank: int
    form: str
    """horovod, runner, kineto or flight-recorder."""
    steps: RankSteps
    collectives: Collectives = field(default_factory=Collectives)
    ranks: int | None = None
    """Of the job, as far as this trace tells."""
    host: str | None = None
    epoch_us: float = 0.0
    """Microseconds since 1970 at the trace's time 0."""
    begins_within: bool = False
    """Whether recording began after some steps, so that the start of the run is not in it."""
    cycle_ms: float | None = None
    """Horovod's: the usual time between two of its cycles, where the timeline marks them."""
    sees_computing: bool = True
    """Whether computing is in the trace; else it is part of the rest."""
    sees_input: bool = True
    """Whether waiting for data is in the trace."""
    sees_waiting: bool = False
    """Whether the trace tells how long this rank waited for its collectives to be requested everywhere."""
    names_ranks: bool = False
    """Whether most negotiations tell when each rank requested it; not with Horovod's response cache."""
    sequence: dict[str, dict[int, str]] = field(default_factory=dict)
    """Process group -> number -> collective, of a flight recorder; the newest ones."""
    unfinished: tuple[str, ...] = ()
    """Collectives that had begun and not ended where the trace ends."""
    not_asked: tuple[int, ...] = ()
    """Ranks that had not requested any of them, while other ranks had."""
