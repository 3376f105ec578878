"""``hpclaunch scale``: scaling studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._site_names import complete_site
from hpclaunch.cli.submit import PROGRAM, SubmitCommand, setting_options
from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpclaunch.scaling.scaling_laws import FittedLaw
    from hpclaunch.scaling.study_report import StudyDocument
    from hpclaunch.scaling.study_table import Boundaries
    from hpclaunch.study.study_file import StudyFile


class _ScaleGroup(click.Group):
    """A group whose ``run`` needs no name: ``scale --site S ...`` is ``scale run --site S ...``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first.startswith("-") and first not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ScaleGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure how far a program scales, and write what an allocation proposal needs.

    Without a command name: run (hpclaunch scale run --help lists its options).

    \b
    Examples:
      hpclaunch scale --site lumi-g --nodes 1,2,4 --strong --batch 512 -- python train.py {batch}
      hpclaunch scale import times.csv --kind strong
    """


def _report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what is wanted of a study and in which form it is printed."""
    options = (
        click.option("--efficiency", type=click.FloatRange(0, 1, min_open=True), default=0.7,
                     show_default=True, help="Recommend the largest size with this efficiency."),
        click.option("--steps", type=click.FloatRange(0, min_open=True), metavar="N",
                     help="Steps of the whole work, of the smallest size: gives hours and node-hours."),
        click.option("--work", type=click.FloatRange(0, min_open=True), metavar="N",
                     help="What a step of the smallest size does, such as images: gives the throughput."),
        click.option("--json", "form", flag_value="json", help="Print one JSON document."),
        click.option("--markdown", "form", flag_value="markdown", help="Print a section in Markdown."),
        click.option("--csv", "form", flag_value="csv", help="Print the table as CSV."),
        click.option("--svg", metavar="FILE",
                     help="Write the picture: ideal line, points, fit and its band."),
        click.option("--html", metavar="FILE", help="Write one page with picture, table and fit."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@command.command(name="import")
@click.argument("file", metavar="FILE.csv")
@click.option("--kind", type=click.Choice(["strong", "weak"]), required=True,
              help="strong: the same work at each size; weak: the work grows with the size.")  # fmt: skip
@click.option("--name", help="The study's name. Default: that of the file.")
@click.option("--site", shell_complete=complete_site, help="Name what a job crosses by this site's nodes.")
@click.option(
    "--gpus-per-node", type=click.IntRange(1), help="GPUs, or ranks, of a node. Default: the site's."
)
@click.option("--nodes-per-group", type=click.IntRange(1), help="Nodes of a group of the network.")
@_report_options
def import_file(
    file: str,
    kind: str,
    name: str | None,
    site: str | None,
    gpus_per_node: int | None,
    nodes_per_group: int | None,
    efficiency: float,
    steps: float | None,
    work: float | None,
    form: str | None,
    svg: str | None,
    html: str | None,
) -> None:
    """Judge times that you measured: columns gpus or ranks, and seconds or images/s; a size may be repeated.

    Example: hpclaunch scale import times.csv --kind strong --gpus-per-node 8
    """
    from pathlib import Path

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
        efficiency=efficiency,
        steps=steps,
        work=work,
        boundaries=_boundaries(site, gpus_per_node, nodes_per_group),
    )
    _print_study(*study_document(measurement, request), form, svg, html)


_SIZES = ("nodes", "tasks", "name", "budget", "array", "after", "after_any")
"""Settings of a job that a study decides."""


def _whole_numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Return the numbers of ``1,2,4``."""
    found = []
    for word in text.split(",") if text else ():
        if not word.strip().isdecimal() or not 1 <= int(word) <= 10**6:
            raise click.BadParameter(f"{word!r} is not a whole number above 0")
        found.append(int(word))
    return tuple(found)


def _one_group(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return a regular expression with one group."""
    import re

    try:
        groups = 1 if text is None else re.compile(text).groups
    except re.error as error:
        raise click.BadParameter(f"'{text}' is not a regular expression: {error}") from None
    if groups != 1:
        hint = r"put the figure into parentheses, as in 'images/s: (\S+)'; (?:...) groups without one"
        raise click.BadParameter(f"'{text}' has {groups} groups; {hint}")
    return text


@command.command(cls=SubmitCommand, params=setting_options(_SIZES))
@click.argument("job", required=False, metavar=PROGRAM)
@click.option("--nodes", callback=_whole_numbers, metavar="N,N,...", help="Sizes of the study, in nodes.")
@click.option("--ranks", callback=_whole_numbers, metavar="N,N,...", help="On local: sizes in ranks.")
@click.option("--strong", "kind", flag_value="strong", help="The same work at each size.")
@click.option("--weak", "kind", flag_value="weak", help="The work grows with the size.")
@click.option("--repeats", type=click.IntRange(1, 100), default=3, show_default=True, help="Jobs per size.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="N",
    help="Samples per step, of each rank (weak), of all (strong). {batch} in the command: per rank.",
)
@click.option(
    "--metric",
    callback=_one_group,
    metavar="REGEX",
    help="The figure that the program prints: 'images/s: (\\S+)'.",
)
@click.option(
    "--metric-is",
    type=click.Choice(["rate", "seconds"]),
    default="rate",
    show_default=True,
    help="Whether that figure is work per second or seconds.",
)
@click.option(
    "--stop-below",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Submit nothing larger once the efficiency is below this.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    help="Most that the study may cost, in the site's unit.",
)
@click.option("--file", type=click.Path(), help="Job file (YAML) with further settings of the jobs.")
@click.option("--name", help="The study's name. Default: made from its settings.")
@click.option("--dry-run", is_flag=True, help="Print the plan and the scripts; submit nothing.")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="--no-wait: submit all jobs at once, each after the one before, and leave. No stop rules then.",
)
@_report_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    job: str | None,
    nodes: tuple[int, ...],
    ranks: tuple[int, ...],
    kind: str | None,
    dry_run: bool,
    wait: bool,
    **options: Any,
) -> None:
    """Run a study: a job per size and repeat, the smallest first, then the table and the fit.

    Called again, it goes on where it was; with more sizes it adds them. In the command {nodes}, {ranks} and
    {batch} stand for the size.

    \b
    Examples:
      hpclaunch scale --site local --ranks 1,2 --strong --batch 128 mnist -- --batch-size {batch}
      hpclaunch scale --site lumi-g --nodes 1,2,4,8 --weak --metric 'images/s: (\\S+)' -- python train.py
    """
    from hpclaunch.cli.submit import command_words

    if kind is None:
        raise click.UsageError("say what grows: --strong (the same work) or --weak (work per rank)")
    if bool(nodes) == bool(ranks):
        raise click.UsageError("give the sizes: --nodes 1,2,4 or, on local, --ranks 1,2")
    report = {name: options.pop(name) for name in _REPORT}
    words = command_words(job, ctx.meta.get("tail", ()))
    if not words:
        raise click.UsageError("name a file (train.py) or mnist, or put a command after --")
    layer = {"is_program": job is None, **({"is_file": True} if "is_file" in ctx.meta else {})}
    study = _wanted(kind, nodes, ranks, words, layer=layer, options=options)
    _show_plan(study, dry_run=dry_run)
    if not dry_run:
        _go_on(study, wait, report)


_REPORT = ("efficiency", "steps", "work", "form", "svg", "html")


def _wanted(
    kind: str,
    nodes: tuple[int, ...],
    ranks: tuple[int, ...],
    words: tuple[str, ...],
    *,
    layer: dict[str, bool],
    options: dict[str, Any],
) -> StudyFile:
    """Return the study of these options; ``layer``: how its command is meant, as in `Layer`."""
    from pathlib import Path

    import msgspec

    from hpclaunch.cli.submit import given_settings
    from hpclaunch.study.study_file import planned_points, wanted_study

    own = {key: options.pop(key) for key in ("batch", "metric", "metric_is")}
    limits = {key: options.pop(key) for key in ("stop_below", "budget")}
    repeats, name, given_file = (options.pop(key) for key in ("repeats", "name", "file"))
    given = msgspec.to_builtins(given_settings(options, command=words))
    settings = {key: value for key, value in given.items() if value not in (None, [], (), {})}
    by = "nodes" if nodes else "ranks"
    file = str(Path(given_file).absolute()) if given_file else None
    what = {"kind": kind, "by": by, **own, "settings": settings, **layer, "file": file}
    return wanted_study(what, limits, name, planned_points(nodes or ranks, repeats))


def _show_plan(study: StudyFile, *, dry_run: bool) -> None:
    """Print the jobs that are left: size, cost at most, expected start; with ``dry_run`` their scripts."""
    from hpclaunch.plural import counted
    from hpclaunch.study.run_study import expected_start, point_job
    from hpclaunch.text_table import text_table

    rows, total, unknown, scripts, starts = [], 0.0, False, [], []
    for size in dict.fromkeys(point.size for point in study.points):
        left = [point for point in study.points if point.size == size and point.state == "planned"]
        if not left:
            continue
        job = point_job(study, left[0])
        cost = None if job.most_cost is None else job.most_cost * len(left)
        total, unknown = total + (cost or 0.0), unknown or cost is None
        shown = "?" if cost is None else f"{cost:.4g}"
        rows.append((str(job.plan.nodes), str(job.plan.tasks), str(len(left)), job.plan.queue or "", shown))
        scripts.append(job.script)
        if not dry_run and (estimate := expected_start(job)):
            starts.append(f"{counted(job.plan.nodes, 'node')}: {estimate}")
    billing = job.plan.profile.billing if rows else None
    unit = billing.unit if billing else "cost"
    jobs = counted(sum(int(row[2]) for row in rows), "job")
    click.echo(f"study {study.name}: {study.kind} scaling, {jobs} left", err=True)
    if rows:
        header = ("nodes", "ranks", "jobs", "queue", f"{unit} at most")
        click.echo(text_table(rows, header), err=True)
        if not unknown:
            click.echo(f"all together at most {total:.4g} {unit}", err=True)
            if study.budget is not None and total > study.budget:
                limit = f"no job is submitted that could pass the budget of {study.budget:g} {unit}"
                click.echo(limit, err=True)
        for line in starts:
            click.echo(line, err=True)
    if dry_run:
        click.echo("\n".join(scripts), nl=False)


def _go_on(study: StudyFile, wait: bool, report: dict[str, Any]) -> None:
    """Run what is left, then print the report."""
    from hpclaunch.study.run_study import continue_study, submit_all
    from hpclaunch.study.study_file import load_study, locked_study, save_study, study_exists

    with locked_study(study.name):
        if study_exists(study.name) and load_study(study.name).token != study.token:
            raise BadInputError(f"the study {study.name} was made by another process just now", "start again")
        save_study(study)
        if not wait:
            submit_all(study, _note)
            _note(f"hpclaunch scale show {study.name} shows what was measured")
            return
        study = continue_study(study, _note)
    if study.stopped:
        _note(f"stopped: {study.stopped}")
    _report(study, report)


def _report(study: StudyFile, report: dict[str, Any]) -> None:
    from hpclaunch.study.study_file import report_of

    site = study.settings.get("site")
    document, law = report_of(study, report["efficiency"], report["steps"], _boundaries(site, None, None))
    _print_study(document, law, report["form"], report["svg"], report["html"])


@command.command()
@click.argument("study")
@_report_options
def show(study: str, **report: Any) -> None:
    """Show a study, with the jobs that have ended since.

    Example: hpclaunch scale show study-1a2b3c4d --markdown
    """
    from hpclaunch.study.run_study import look_again
    from hpclaunch.study.study_file import load_study

    _report(look_again(load_study(study), _note), report)


def _note(text: str) -> None:
    click.echo(f"hpclaunch: {text}", err=True)


@command.command()
@click.argument("study")
@click.option(
    "--sizes",
    callback=_whole_numbers,
    required=True,
    metavar="N,N,...",
    help="More sizes, in nodes, or in ranks as the study has them.",
)
@click.option("--repeats", type=click.IntRange(1, 100), default=3, show_default=True, help="Jobs per size.")
@click.option("--wait/--no-wait", default=True, help="As in run.")
@_report_options
def add(study: str, sizes: tuple[int, ...], repeats: int, wait: bool, **report: Any) -> None:
    """Add sizes to a study and run them.

    Example: hpclaunch scale add study-1a2b3c4d --sizes 16,32
    """
    from hpclaunch.study.study_file import load_study, planned_points, with_more_points

    grown = with_more_points(load_study(study), planned_points(sizes, repeats))
    _show_plan(grown, dry_run=False)
    _go_on(grown, wait, report)


@command.command()
@click.argument("studies", nargs=-1, required=True, metavar="STUDY STUDY...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def compare(studies: tuple[str, ...], as_json: bool) -> None:
    """Compare studies size by size: seconds per step, and relative to the first.

    Example: hpclaunch scale compare before after
    """
    from hpclaunch.cli._documents import print_document
    from hpclaunch.scaling.study_report import compared
    from hpclaunch.study.run_study import look_again
    from hpclaunch.study.study_file import load_study, measurement_of
    from hpclaunch.text_table import text_table

    found = [measurement_of(look_again(load_study(name), _note)) for name in studies]
    if len({study.kind for study in found}) > 1:
        kinds = ", ".join(f"{study.study} is {study.kind}" for study in found)
        _note(f"{kinds}: beyond the smallest size they do not do the same work")
    rows = compared(found)
    if as_json:
        print_document(rows)
        return
    cells = []
    for row in rows:
        times = ["" if value is None else f"{value:.4g}" for value in row.step_s]
        ratios = ["" if value is None else f"{value:.3f}" for value in row.relative[1:]]
        cells.append([str(row.size), *times, *ratios])
    header = ["size", *(f"{name} s" for name in studies), *(f"{name} / {studies[0]}" for name in studies[1:])]
    click.echo(text_table(cells, header))


def _boundaries(site: str | None, gpus_per_node: int | None, nodes_per_group: int | None) -> Boundaries:
    from hpclaunch.scaling.study_table import Boundaries

    if site and gpus_per_node is None:
        from hpclaunch.site.load_profile import load_site

        profile = load_site(site)
        node, network = profile.node, profile.fabric.network
        gpus_per_node = len(node.gpus) if node and node.gpus else None
        nodes_per_group = nodes_per_group or (network.nodes_per_group if network else None)
    return Boundaries(gpus_per_node=gpus_per_node, nodes_per_group=nodes_per_group)


def _print_study(
    document: StudyDocument, law: FittedLaw | None, form: str | None, svg: str | None, html: str | None
) -> None:
    """Print the study in one form; write the files."""
    from hpclaunch.cli._documents import print_document
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.scaling.study_picture import as_html, as_svg
    from hpclaunch.scaling.study_report import as_csv, as_markdown, as_text

    for name, draw in ((svg, as_svg), (html, as_html)):
        if name:
            LocalHost().write_file(name, draw(document, law).encode())
            click.echo(f"{name}: written", err=True)
    if form == "json":
        print_document(document)
    elif form == "markdown":
        click.echo(as_markdown(document))
    elif form == "csv":
        click.echo(as_csv(document))
    else:
        click.echo(as_text(document))
