"""Every setting of a job: its type and default here, its words for ``submit --help`` and the docs in
``settings.json``.

``JobRequest`` has these fields, ``JobSettings`` has them all as optional ones, and ``hpclaunch submit`` has
an option for each row with a group. This module must not import msgspec, which would add 10 ms to
``submit --help``.
"""

# No annotations from __future__: the table is read from the annotations.
import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from hpclaunch.package_data import text_beside


class Row(NamedTuple):
    """One setting."""

    name: str
    type: Any
    kind: Any
    group: str
    default: Any
    default_text: str
    help: str
    meaning: str
    computed: str = ""
    part: str = ""
    options: Sequence[str] = ()
    metavar: str | None = None
    commas: bool = False
    limits: tuple[int, int] | None = None


if TYPE_CHECKING:
    from msgspec import Struct

    from hpclaunch.plan.request import Command
    from hpclaunch.site.schema import Environment

else:

    class Struct:
        """Takes the keywords of msgspec's."""

        def __init_subclass__(cls, **keywords): ...


class SettingsTable(Struct, frozen=True, kw_only=True):
    """The request for a job, after all sources of settings were merged; None: not specified."""

    command: "Command"

    site: str
    name: str = "hpclaunch"
    account: str | None = None
    queue: str | None = None
    exclude: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()

    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    gpus_per_task: int | None = None
    gpu_type: str | None = None
    cpus_per_task: int | None = None
    threads_per_core: int = 1
    memory: str | None = None
    time: str | None = None
    budget: float | None = None
    exclusive: bool = True

    framework: Literal["horovod", "torch", "deepspeed", "jax", "ray", "mpi4py", "none"] | None = None
    as_ranks: bool = False
    zero_stage: int | None = None
    timeline: str | None = None
    profile: int | None = None
    profile_after: int = 10
    stacks: bool = True
    binding: Literal["warn", "strict", "off"] = "warn"
    mpi: str | None = None
    python: str | None = None

    check: bool = False
    model: tuple[str, ...] = ()
    preflight: bool = False
    check_imports: bool = False
    exclude_bad_nodes: bool = False
    space: tuple[str, ...] = ()
    stage: tuple[str, ...] = ()
    stage_links: Literal["refuse", "keep"] = "refuse"
    keep_staged: bool = False

    after: tuple[str, ...] = ()
    after_any: bool = False
    begin: str | None = None
    array: str | None = None

    max_restarts: int = 0
    warn_before: str = "2m"
    idle_timeout: str | None = None

    sample: int = 30
    no_sample: bool = False

    remote_dir: str | None = None

    software: str = "site"
    container: str | None = None
    container_runtime: (
        Literal["apptainer", "singularity", "shifter", "podman-hpc", "pyxis", "container-engine"] | None
    ) = None
    container_bind: tuple[str, ...] = ()
    venv: str | None = None
    conda: str | None = None
    module: tuple[str, ...] = ()
    env: dict[str, str] = {}  # noqa: RUF012

    imports: tuple[str, ...] = ()
    environment: "Environment | None" = None


@cache
def rows() -> tuple[Row, ...]:
    """Return the table row by row."""
    words = json.loads(text_beside(__file__, "settings.json"))
    groups = {name: group for group, table in words.items() for name in table}
    return tuple(
        _row(name, kind, groups[name], words[groups[name]][name])
        for name, kind in SettingsTable.__annotations__.items()
    )


def _row(name: str, kind: Any, group: str, words: dict[str, Any]) -> Row:
    parts, default = get_args(kind), getattr(SettingsTable, name, ...)
    text = "" if default in (None, (), {}, ...) else str(default)
    if isinstance(default, bool):
        text = "yes" if default else "no"
    text = words.get("computed", text)
    help = f"{words['meaning']} Default: {text}." if text else words["meaning"]
    return Row(name, kind, parts[0] if type(None) in parts else kind, group, default, text, help, **words)
