"""From a LaunchPlan to the text of its script: narrow lines, one reason for each, sources by number."""

import re
import textwrap
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from hpclaunch import __version__
from hpclaunch.amounts import counted
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.plan.frameworks import about_framework
from hpclaunch.plan.layout import JobPlace, LaunchPlan, cores_line
from hpclaunch.plan.plan_file import FOLDER, pulls_eessi_image
from hpclaunch.plan.startup_plan import STARTUP_CALL
from hpclaunch.scheduler.job_header import Line
from hpclaunch.software.script_lines import WIDTH, continued, literal

if TYPE_CHECKING:
    from jinja2 import Environment


def render(plan: LaunchPlan, place: JobPlace, templates: "Environment", *, plain: bool = False) -> str:
    """Return the script. Its text depends on the arguments alone.

    ``templates`` has a template ``KIND.sh.j2`` for the scheduler. ``plain``: a script that needs no file of
    ours, without the proof of the binding and all else that such files do; raises BadInputError for a job
    that cannot do without them.

    Without a job folder in ``place`` (a dry run) the script makes a folder ``hpclaunch-NUMBER`` where it is
    submitted.
    """
    if plain and (needed := _needs_files(plan)):
        raise BadInputError.case("plain: files", first=needed[0], options=" ".join(needed))
    layout = ScriptLayout()
    header = layout.place(plan.header, sentinel="#SBATCH ")
    alone = filter(lambda each: each.text != STARTUP_CALL, plan.environment)
    environment = layout.place(alone if plain else plan.environment)
    ranks = layout.place(plan.rank_setup)
    return templates.get_template(plan.scheduler.template).render(
        about={
            "plan": plan,
            "version": __version__,
            "dates": sorted({source.checked for source in plan.profile.sources.values()}),
            "framework": about_framework(plan),
            "cores": cores_line(plan.request, plan.profile, plan.tasks_per_node),
            "launcher": plan.launcher.name,
            "counted": counted,
            "cpu_list": format_cpu_list,
        },
        wrapped=wrapped,
        directives=plan.header,
        header=header,
        header_alone=layout.place(plan.header, trailing=False),
        environment=environment,
        rank_setup=ranks,
        node_setup=layout.place(plan.node_setup),
        started=plan.started.launcher.name if plan.started else "",
        sources=layout.sources,
        launch=_command((*(("hpclaunch_supervise",) if plan.supervision else ()), *plan.launch)),
        program=_command(tuple(map(literal, plan.argv))),
        launcher_file=None if plan.started else plan.launcher.text_file,
        preflight=plan.preflight,
        staging=plan.staging,
        plain=plain,
        needs_folder=_names(plan, "HPCLAUNCH_JOB_FOLDER"),
        needs_tasks=_names(plan, "HPCLAUNCH_TASKS"),
        tasks=plan.tasks,
        has_files=bool(place.folder or place.files),
        needs_files=_needs_files(plan),
        **_folders(plan, place),
    )


def _folders(plan: LaunchPlan, place: JobPlace) -> dict[str, str | None]:
    """Return, as shell text, the job's number and its folders."""
    scheduler = plan.scheduler
    array = scheduler.arrays if plan.request.array else None
    number = array.job_number if array else scheduler.job_number
    usual = f'"{scheduler.submit_folder}/hpclaunch-{number}"'
    return {
        "job_id": literal(place.job_id) if place.job_id else f'"{number}"',
        "folder": literal(place.folder) if place.folder else usual,
        "files": literal(place.files) if place.files else f"$HPCLAUNCH_JOB_FOLDER/{FOLDER}",
        "array_index": array.index_variable if array else None,
    }


def _command(words: tuple[str, ...]) -> str:
    """Return words of shell text, on one line where one of them is long, such as masks."""
    return " ".join(words) if max(map(len, words), default=0) > WIDTH // 2 else continued(*words)


def _names(plan: LaunchPlan, variable: str) -> bool:
    texts = [line.text for line in (*plan.environment, *plan.rank_setup)]
    if plan.started and variable == "HPCLAUNCH_JOB_FOLDER":
        return True
    return any(re.search(rf"\b{variable}\b", text) for text in (*texts, *plan.launch))


def _needs_files(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the options that other files do."""
    request = plan.request
    wanted = {
        "--stage": plan.staging,
        "--preflight": request.preflight,
        "--check-imports": request.check_imports,
        "--max-restarts": request.max_restarts,
        "--idle-timeout": request.idle_timeout,
        "--profile": request.profile,
        "--framework ray": plan.framework.per_node,
        "EESSI's container": pulls_eessi_image(plan),
        "mnist": request.command.bundled and not plan.scheduler.starts_at_once,
    }
    return tuple(option for option, given in wanted.items() if given)


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a script; its reason follows it where there is room, else it stands above."""

    above: tuple[str, ...]
    text: str
    comment: str


class ScriptLayout:
    """Places the lines of one script and numbers their sources in the order of their use."""

    def __init__(self) -> None:
        """Begin with no source."""
        self._numbers: dict[str, int] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources used so far, each as ``[NUMBER] TEXT``."""
        return tuple(f"[{number}] {text}" for text, number in self._numbers.items())

    def place(
        self, lines: Iterable[Line], *, sentinel: str = "", trailing: bool = True
    ) -> tuple[Placed, ...]:
        """Return the lines as they stand in the script.

        ``sentinel``: what the template writes before each text. ``trailing``: comments may follow a text.
        """
        placed: list[Placed] = []
        for _, group in groupby(lines, key=lambda line: (line.reason, line.source)):
            each = [self._placed(line, len(sentinel), trailing) for line in group]
            if len(each) > 1 and (above := next((line.above for line in each if line.above), ())):
                # A reason that several lines share stands above the first of them.
                each = [Placed(above=(), text=line.text, comment="") for line in each]
                each[0] = Placed(above=above, text=each[0].text, comment="")
            placed += each
        return tuple(placed)

    def _placed(self, line: Line, before: int, trailing: bool) -> Placed:
        reason = line.reason
        if line.source:
            reason += f" [{self._numbers.setdefault(line.source, len(self._numbers) + 1)}]"
        fits = before + len(line.text) + len(reason) + 4 <= WIDTH and "\n" not in line.text
        if trailing and fits:
            return Placed(above=(), text=line.text, comment=f"  # {reason}" if reason else "")
        return Placed(above=wrapped(reason), text=line.text, comment="")


def wrapped(text: str) -> tuple[str, ...]:
    """Return a comment as lines of a script, without their ``#``."""
    return tuple(textwrap.wrap(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False))
