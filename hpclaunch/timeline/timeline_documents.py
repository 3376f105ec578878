"""The document of ``hpclaunch timeline --json``. Times in milliseconds; null: the files do not tell."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import msgspec

from hpclaunch.json_document import Document


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of lost time, or ``none``."""

    kind: str
    rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    share_of_steps: float | None = None
    late_ms: float | None = None
    noise_ms: float | None = None
    evidence: str
    remedy: str


class FileSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    file: str
    format: str
    ranks: tuple[int, ...]
    events: int
    whole: bool
    repaired: int
    lost: int


class CollectiveSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All collectives of one kind, on the rank that spends least on them."""

    name: str
    count: int
    messages: int | None
    tensors_per_message: float | None
    bytes: int | None
    seconds: float | None
    bus_gb_s: float | None
    site_bus_gb_s: float | None = None


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
    step_ms: float | None = None
    late_ms: tuple[float, ...] = ()


class TimelineDocument(Document, frozen=True, kw_only=True):
    """The output of ``hpclaunch timeline --json``. Times in milliseconds; null: the files do not tell."""

    files: tuple[FileSummary, ...]
    job: str | None = None
    ranks: int
    steps: int
    first_steps: int
    step_ms: dict[str, float | None]
    shares: dict[str, float | None]
    hidden: float | None
    collectives: tuple[CollectiveSummary, ...]
    tensors: tuple[TensorSummary, ...]
    tensors_per_step: float | None
    by_rank: tuple[RankSummary, ...]
    what_if: dict[str, float | None]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    every_step_ms: tuple[float, ...]
