"""The document of ``hpclaunch timeline --json``. Times in milliseconds; null: the files do not tell."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import msgspec

from hpclaunch.json_document import Document


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of lost time, or ``none``."""

    kind: str
    """mismatch, ended, straggler, input, small-tensors, bandwidth, negotiation, start, idle or none."""
    rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    share_of_steps: float | None = None
    late_ms: float | None = None
    """The loss in such a step."""
    noise_ms: float | None = None
    evidence: str
    remedy: str


class FileSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    file: str
    format: str
    """horovod, runner, kineto or flight-recorder."""
    ranks: tuple[int, ...]
    events: int
    whole: bool
    """False: it is cut, or was never closed."""
    repaired: int
    """Events with an unescaped name, which were read all the same."""
    lost: int
    """Places at which something was passed over."""


class CollectiveSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All collectives of one kind, on the rank that spends least on them."""

    name: str
    count: int
    """Tensors."""
    messages: int | None
    tensors_per_message: float | None
    bytes: int | None
    seconds: float | None
    bus_gb_s: float | None
    site_bus_gb_s: float | None = None
    """The figure of the site's page for the most similar message."""


class TensorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor, from its request to its end."""

    name: str
    count: int
    bytes: int | None
    mean_ms: float
    longest_ms: float


class RankSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One rank."""

    rank: int
    node: str | None = None
    gpu: str | None = None
    waiting_ms: float | None = None
    """Per step, the median."""
    step_ms: float | None = None
    late_ms: tuple[float, ...] = ()
    """How much later than the median rank it came: of each group of steps the most, of at most 100 groups.
    Empty: not known, or 64 other ranks are later."""


class TimelineDocument(Document, frozen=True, kw_only=True):
    """The output of ``hpclaunch timeline --json``. Times in milliseconds; null: the files do not tell."""

    files: tuple[FileSummary, ...]
    job: str | None = None
    """Id of the job whose they are."""
    ranks: int
    steps: int
    first_steps: int
    """At the beginning, which are in no other number."""
    step_ms: dict[str, float | None]
    shares: dict[str, float | None]
    hidden: float | None
    """Share of the communication at the same time as computing."""
    collectives: tuple[CollectiveSummary, ...]
    tensors: tuple[TensorSummary, ...]
    """The slowest ones."""
    tensors_per_step: float | None
    by_rank: tuple[RankSummary, ...]
    what_if: dict[str, float | None]
    """Milliseconds per step: ``no_straggler``, if the late ranks were as the median one;
    ``communication_hidden``."""
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    every_step_ms: tuple[float, ...]
    """At most 400 of them, evenly chosen."""


DOCUMENTS = {"timeline": TimelineDocument}
"""Name of the schema -> its type."""
