"""From a LaunchPlan to the text of its script."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

import jinja2
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpclaunch import kept
from hpclaunch.job.frameworks import shows_all_gpus
from hpclaunch.job.model import LaunchPlan
from hpclaunch.job.plan import about
from hpclaunch.job.shape import Target
from hpclaunch.resources import resource_dir
from hpclaunch.scheduler.registry import get_scheduler

# For a script without a job folder: scheduler -> (job number, folder of submission) as shell expressions.
_BY_HAND = {
    "slurm": ("$SLURM_JOB_ID", "$SLURM_SUBMIT_DIR"),
    "pbs": ("${PBS_JOBID%%[!0-9]*}", "$PBS_O_WORKDIR"),
    "local": ("$$", "$PWD"),
}

_ARRAY_INDEX = {"slurm": "SLURM_ARRAY_TASK_ID", "pbs": "PBS_ARRAY_INDEX"}


def render(plan: LaunchPlan, target: Target) -> str:
    """Return the script. Its text depends on the arguments alone.

    Without a job folder in ``target`` (a dry run) the script keeps its files in a folder
    ``hpclaunch-NUMBER`` where it is submitted, so that it works when it is submitted by hand.
    """
    kind = plan.profile.scheduler.kind
    number, here = _BY_HAND[kind]
    if plan.request.array and kind == "slurm":
        number = "$SLURM_ARRAY_JOB_ID"
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(resource_dir("templates")),
        bytecode_cache=_KeptTemplates(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # a shell script, not HTML: the shquote filter quotes
    )
    environment.filters["shquote"] = shlex.quote
    environment.filters["comment"] = comment
    return environment.get_template(f"{kind}.sh.j2").render(
        about=about(plan),
        header=plan.header,
        environment=plan.environment,
        rank_setup=plan.rank_setup,
        launch=plan.launch,
        argv=plan.argv,
        kind=kind,
        **_coming_back(plan),
        # What PBS opens for a job that comes back may be emptied, so the script itself writes on.
        own_log=bool(plan.request.array) or (kind == "pbs" and plan.request.max_restarts > 0),
        array_index=_ARRAY_INDEX[kind] if plan.request.array else None,
        supervision=plan.supervision,
        preflight=plan.preflight,
        report=plan.binding is not None,
        strict=plan.request.binding == "strict",
        gpu_visible_var=_visible_var(plan),
        own_gpus=_own_gpus(plan),
        job_id=shlex.quote(target.job_id) if target.job_id else f'"{number}"',
        folder=shlex.quote(target.folder) if target.folder else f'"{here}/hpclaunch-{number}"',
    )


class _KeptTemplates(BytecodeCache):
    """Compiled templates, used while the template, this module, Jinja and Python are those that made them.

    Jinja itself looks at the template's text and at Python's version.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket if its template was kept."""
        data = kept.recall(f"templates/{bucket.key}") or b""
        if data[:32] == self._seal(data[32:]):
            bucket.bytecode_from_string(data[32:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what is in the bucket."""
        data = bucket.bytecode_to_string()
        kept.keep(f"templates/{bucket.key}", self._seal(data) + data)

    @staticmethod
    def _seal(data: bytes) -> bytes:
        parts = (jinja2.__version__.encode(), Path(__file__).read_bytes(), data)
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def _coming_back(plan: LaunchPlan) -> dict[str, str]:
    """Return the shell text by which a job comes back: requeued, or as the next of a chain."""
    if plan.supervision is None:
        return {}
    scheduler = get_scheduler(plan.profile.scheduler.kind)
    again = scheduler.submit_command('"$HPCLAUNCH_JOB_FOLDER/job.sh"')
    return {"requeue": scheduler.requeue, "submit_again": " ".join(again)}


def _visible_var(plan: LaunchPlan) -> str | None:
    ranks = plan.binding.ranks if plan.binding else ()
    return plan.profile.binding.gpu_visible_var if any(rank.gpus for rank in ranks) else None


def _own_gpus(plan: LaunchPlan) -> int:
    """Return how many of the GPUs that a rank sees are its own; 0: all of them."""
    gpus = tuple(rank.gpus for rank in plan.binding.ranks) if plan.binding else ()
    return len(gpus[0]) if shows_all_gpus(plan.request, gpus) else 0


def comment(text: str) -> str:
    """Make a text safe inside one comment line: no line break may end the comment."""
    return text.replace("\n", " ").replace("\r", " ")
