"""``hpclaunch scale``: scaling studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hpclaunch.cli._site_names import complete_site

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hpclaunch.scaling.scaling_laws import FittedLaw
    from hpclaunch.scaling.study_report import StudyDocument
    from hpclaunch.scaling.study_table import Boundaries


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure how far a program scales, and write what an allocation proposal needs.

    Example: hpclaunch scale import times.csv --kind strong
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
    """Judge times that you measured: columns gpus or ranks, and seconds; a size may be repeated.

    Example: hpclaunch scale import times.csv --kind strong --gpus-per-node 8
    """
    from pathlib import Path

    from hpclaunch.scaling.measured_sizes import read_measurement
    from hpclaunch.scaling.study_report import StudyRequest, study_document
    from hpclaunch.site.yaml_tree import read_data

    data = read_data(Path(file))
    request = StudyRequest(
        name=name or Path(file).stem,
        kind="weak" if kind == "weak" else "strong",
        efficiency=efficiency,
        steps=steps,
        work=work,
        boundaries=_boundaries(site, gpus_per_node, nodes_per_group),
    )
    measurement = read_measurement(data.decode("utf-8-sig", "replace"), file)
    _print_study(*study_document(measurement, request), form, svg, html)


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
    from pathlib import Path

    from hpclaunch.atomic_file import write_file
    from hpclaunch.cli._documents import print_document
    from hpclaunch.scaling.study_picture import as_html, as_svg
    from hpclaunch.scaling.study_report import as_csv, as_markdown, as_text

    for name, draw in ((svg, as_svg), (html, as_html)):
        if name:
            write_file(Path(name), draw(document, law).encode())
            click.echo(f"{name}: written", err=True)
    if form == "json":
        print_document(document)
    elif form == "markdown":
        click.echo(as_markdown(document))
    elif form == "csv":
        click.echo(as_csv(document))
    else:
        click.echo(as_text(document))
