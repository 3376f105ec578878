"""``hpclaunch scale``: scaling studies."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._job_options import SubmitCommand, command_words, given_settings, setting_options
from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import echo_text, print_document, printed, terminal_table, terminal_width
from hpclaunch.errors import EXIT_FAILED, BadInputError, note_text
from hpclaunch.text_table import to_stderr

if TYPE_CHECKING:
    from hpclaunch.scaling.scaling_laws import FittedLaw
    from hpclaunch.scaling.study_report import StudyDocument
    from hpclaunch.scaling.study_table import Boundaries
    from hpclaunch.study.run_study import PointJob
    from hpclaunch.study.study_file import StudyFile


class _ScaleGroup(click.Group):
    """A group whose ``run`` needs no name: ``scale --site S ...`` is ``scale run --site S ...``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first.startswith("-") and first not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ScaleGroup, context_settings={"help_option_names": ["-h", "--help"]})
@options("scale")
def command() -> None:
    """Measure how far a program scales, and write what an allocation proposal needs."""


@command.command(name="import")
@options("scale import")
def import_file(
    file: str,
    kind: str,
    name: str | None,
    site: str | None,
    gpus_per_node: int | None,
    nodes_per_group: int | None,
    work: float | None,
    **report: Any,
) -> None:
    """Judge times that you measured: columns gpus or ranks, seconds or images/s; sizes may be repeated."""
    from hpclaunch.scaling.measured_sizes import RATES, read_measurement, seconds_of_rates
    from hpclaunch.scaling.study_report import StudyRequest, study_document
    from hpclaunch.site.yaml_tree import read_data

    text = read_data(Path(file)).decode("utf-8-sig", "replace")
    measurement = read_measurement(text, file, ("seconds", *RATES))
    if measurement.column in RATES:
        work = work or 1
        measurement = seconds_of_rates(measurement, work, weak=kind == "weak")
    request = StudyRequest(
        name=name or Path(file).stem,
        kind="weak" if kind == "weak" else "strong",
        efficiency=report["efficiency"],
        steps=report["steps"],
        work=work,
        boundaries=_boundaries(site, gpus_per_node, nodes_per_group),
    )
    _print_study(*study_document(measurement, request), report)


_SIZES = ("nodes", "tasks", "name", "budget", "array", "after", "after_any")
"""Settings of a job that a study decides."""


def _whole_numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    found = []
    for word in text.split(",") if text else ():
        if not word.strip().isdecimal() or not 1 <= int(word) <= 10**6:
            raise click.BadParameter(f"{word!r} is not a whole number above 0")
        if int(word) in found:
            raise click.BadParameter(f"{word} stands there twice; --repeats says how often a size runs")
        found.append(int(word))
    return tuple(found)


def _share(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return 0.05 for ``5%``, and for ``0.05``."""
    if text is None:
        return None
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    share = float(number[1]) / (100 if number[2] else 1) if number else 0.0
    if not 0.001 <= share < 1:
        raise click.BadParameter(f"{text!r} is not a share such as 5%")
    return share


def _one_group(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    try:
        groups = 1 if text is None else re.compile(text).groups
    except re.error as error:
        raise click.BadParameter(f"'{text}' is not a regular expression: {error}") from None
    if groups != 1:
        hint = r"put the figure into parentheses, as in 'images/s: (\S+)'; (?:...) groups without one"
        raise click.BadParameter(f"'{text}' has {groups} groups; {hint}")
    return text


@command.command(cls=SubmitCommand, params=setting_options(_SIZES))
@options("scale run", nodes=_whole_numbers, ranks=_whole_numbers, metric=_one_group, until=_share)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    job: str | None,
    nodes: tuple[int, ...],
    ranks: tuple[int, ...],
    kind: tuple[str, ...],
    dry_run: bool,
    wait: bool,
    **options: Any,
) -> None:
    """Run a study: a job per size and repeat, in turns of all sizes, then the table and the fit."""
    if not kind:
        raise click.UsageError("say what grows: --strong (the same work) or --weak (work per rank)")
    if len(set(kind)) > 1:
        raise click.UsageError("--strong and --weak: it is one of them")
    if bool(nodes) == bool(ranks):
        raise click.UsageError("give the sizes: --nodes 1,2,4 or, on local, --ranks 1,2")
    report = {name: options.pop(name) for name in _REPORT}
    words = command_words(job, ctx.meta.get("tail", ()))
    if not words:
        raise click.UsageError("name a file (train.py) or mnist, or put a command after --")
    what = {"kind": kind[0], "by": "nodes" if nodes else "ranks", "is_program": job is None}
    what |= {"is_file": True} if "is_file" in ctx.meta else {}
    study = _wanted(what, nodes or ranks, words, options)
    _show_plan(study, dry_run=dry_run)
    if not dry_run:
        _go_on(study, wait, report)


_REPORT = ("efficiency", "steps", "work", "form", "svg", "html")


def _wanted(
    what: dict[str, Any], sizes: tuple[int, ...], words: tuple[str, ...], options: dict[str, Any]
) -> StudyFile:
    """Return the study of these options; ``what``: also how its command is meant, as in `Layer`."""
    import msgspec

    from hpclaunch.study.study_file import planned_points, wanted_study

    own = {key: options.pop(key) for key in ("batch", "metric", "metric_is")}
    limits = {key: options.pop(key) for key in ("stop_below", "budget", "node_hours", "until")}
    repeats, name, given_file = (options.pop(key) for key in ("repeats", "name", "file"))
    given = msgspec.to_builtins(given_settings(options, command=words))
    settings = {key: value for key, value in given.items() if value not in (None, [], (), {})}
    what = {**what, **own, "settings": settings, "file": given_file and str(Path(given_file).absolute())}
    if what["kind"] == "strong" and "{batch}" not in " ".join(words):
        to_stderr(note_text("study: own batch"))
    return wanted_study(what, limits, name, planned_points(sizes, repeats))


def _show_plan(study: StudyFile, *, dry_run: bool) -> None:
    """Print the jobs that are left: size, cost at most, expected start; with ``dry_run`` their scripts."""
    from hpclaunch.study.run_study import point_job

    rows, total, unknown, scripts, starts = [], 0.0, False, [], []
    for size in dict.fromkeys(point.size for point in study.points):
        left = [point for point in study.points if point.size == size and point.state == "planned"]
        if not left:
            continue
        job = point_job(study, left[0])
        _refuse(job, dry_run=dry_run)
        cost = None if job.most_cost is None else job.most_cost * len(left)
        total, unknown = total + (cost or 0.0), unknown or cost is None
        shown = "?" if cost is None else f"{cost:.4g}"
        rows.append((str(job.plan.nodes), str(job.plan.tasks), str(len(left)), job.plan.queue or "", shown))
        scripts.append(job.script)
        if not dry_run and (estimate := job.job.expected_start()):
            starts.append(f"{counted(job.plan.nodes, 'node')}: {estimate}")
    billing = job.plan.profile.billing if rows else None
    unit = billing.unit if billing else "cost"
    jobs = counted(sum(int(row[2]) for row in rows), "job")
    click.echo(f"study {study.name}: {study.kind} scaling, {jobs} left", err=True)
    if rows:
        header = ("nodes", "ranks", "jobs", "queue", f"{unit} at most")
        click.echo(terminal_table(rows, header, drop=("queue", "jobs"), err=True), err=True)
        if not unknown:
            click.echo(f"all together at most {total:.4g} {unit}", err=True)
            if study.budget is not None and total > study.budget:
                limit = f"no job is submitted that could pass the budget of {study.budget:g} {unit}"
                click.echo(limit, err=True)
        for line in starts:
            click.echo(line, err=True)
    if dry_run:
        click.echo("\n".join(scripts), nl=False)


def _refuse(job: PointJob, *, dry_run: bool) -> None:
    for problem in job.plan.problems:
        if not dry_run:
            raise BadInputError(problem.message, problem.hint)
        to_stderr(f"submitting these jobs is refused: {problem}")


def _go_on(study: StudyFile, wait: bool, report: dict[str, Any]) -> None:
    from hpclaunch.study.run_study import continue_study, submit_all
    from hpclaunch.study.study_file import load_study, locked_study, save_study, study_exists

    with locked_study(study.name):
        if study_exists(study.name) and load_study(study.name).token != study.token:
            raise BadInputError(f"the study {study.name} was made by another process just now", "start again")
        save_study(study)
        if not wait:
            submit_all(study, to_stderr)
            to_stderr(f"hpclaunch scale show {study.name} shows what was measured")
            return
        study = continue_study(study, to_stderr)
    if study.stopped:
        to_stderr(f"stopped: {study.stopped}")
    if _report(study, report).failed:
        click.get_current_context().exit(EXIT_FAILED)


def _report(study: StudyFile, report: dict[str, Any]) -> StudyDocument:
    from hpclaunch.study.study_file import report_of

    site = study.settings.get("site")
    document, law = report_of(study, report["efficiency"], report["steps"], _boundaries(site, None, None))
    _print_study(document, law, report)
    return document


@command.command()
@options("scale show")
def show(study: str, **report: Any) -> None:
    """Show a study, with the jobs that have ended since."""
    from hpclaunch.study.run_study import look_again
    from hpclaunch.study.study_file import load_study

    _report(look_again(load_study(study), to_stderr), report)


@command.command()
@options("scale add", sizes=_whole_numbers)
def add(study: str, sizes: tuple[int, ...], repeats: int | None, wait: bool, **report: Any) -> None:
    """Add sizes to a study and run them, as often as those it has."""
    from hpclaunch.study.study_file import load_study, planned_points, with_more_points

    known = load_study(study)
    repeats = repeats or max(Counter(point.size for point in known.points).values())
    grown = with_more_points(known, planned_points(sizes, repeats))
    _show_plan(grown, dry_run=False)
    _go_on(grown, wait, report)


@command.command()
@options("scale compare")
def compare(studies: tuple[str, ...]) -> None:
    """Compare studies size by size: seconds per step, and relative to the first."""
    from hpclaunch.scaling.study_report import compared
    from hpclaunch.study.run_study import look_again
    from hpclaunch.study.study_file import load_study, report_of

    found = [report_of(look_again(load_study(name), to_stderr))[0] for name in studies]
    if len({study.kind for study in found}) > 1:
        kinds = ", ".join(f"{study.study} is {study.kind}" for study in found)
        to_stderr(f"{kinds}: beyond the smallest size they do not do the same work")
    rows = compared(found)
    if printed(rows):
        return
    cells = []
    for row in rows:
        times = ["" if value is None else f"{value:.4g}" for value in row.step_s]
        ratios = ["" if value is None else f"{value:.3f}" for value in row.relative[1:]]
        cells.append([str(row.size), *times, *ratios])
    header = ["size", *(f"{name} s" for name in studies), *(f"{name} / {studies[0]}" for name in studies[1:])]
    click.echo(terminal_table(cells, header))


def _boundaries(site: str | None, gpus_per_node: int | None, nodes_per_group: int | None) -> Boundaries:
    from hpclaunch.scaling.study_table import Boundaries

    if site and gpus_per_node is None:
        from hpclaunch.site.load_profile import load_site

        profile = load_site(site)
        node, network = profile.node, profile.fabric.network
        gpus_per_node = len(node.gpus) if node and node.gpus else None
        nodes_per_group = nodes_per_group or (network.nodes_per_group if network else None)
    return Boundaries(gpus_per_node=gpus_per_node, nodes_per_group=nodes_per_group)


def _print_study(document: StudyDocument, law: FittedLaw | None, report: dict[str, Any]) -> None:
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.scaling.study_picture import as_html, as_svg
    from hpclaunch.scaling.study_report import as_csv, as_markdown, as_text, repeats_csv

    for name, draw in ((report["svg"], as_svg), (report["html"], as_html)):
        if name:
            LocalHost().write_file(name, draw(document, law).encode())
            click.echo(f"{name}: written", err=True)
    if report["form"] == "json":
        print_document(document)
    else:
        forms = {"markdown": as_markdown, "csv": as_csv, "repeats": repeats_csv}
        if report["form"] in forms:
            click.echo(forms[report["form"]](document))
        else:
            echo_text(as_text(document, terminal_width()))
