"""``hpclaunch bench``: the bundled allreduces on ranks, against MPI's own and the limit of memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._jobs import goes_on, named
from hpclaunch.cli._options import check_picture_name, options
from hpclaunch.cli._terminal import echo_text, print_document, terminal_width, write_picture
from hpclaunch.errors import EXIT_FAILED, BadInputError

if TYPE_CHECKING:
    from hpclaunch.api import JobHandle


@click.command()
@options("bench")
@click.pass_context
def command(ctx: click.Context, /, job: str | None, form: str, picture: Path | None, **more: Any) -> None:
    """Measure the bundled allreduces on ranks bound as a training's: time by size, against MPI's own
    allreduce and the limit of memory.
    """
    from hpclaunch.scaling.bench_report import as_csv, as_svg, as_text, bench_of

    check_picture_name(picture)
    handle = named(job) if job else _submitted(**more)
    with handle.connected(), goes_on(handle):
        record = handle.wait()
    if record.state != "done":
        click.echo(f"hpclaunch: job {record.id} {record.state}: {record.reason}", err=True)
        ctx.exit(EXIT_FAILED)
    bench = bench_of(handle.result(), handle.id)
    if picture:
        write_picture(picture, as_svg(bench))
    if form == "json":
        print_document(bench)
    elif form == "csv":
        click.echo(as_csv(bench))
    else:
        echo_text(as_text(bench, terminal_width()))


def _submitted(sizes: str, algorithms: str, rounds: int, fresh: bool, **settings: Any) -> JobHandle:
    """Submit the benchmark, which the runner of the bundled training has, with a training's binding."""
    from hpclaunch.api import Job
    from hpclaunch.job.program_check import option_problems

    words = ["bench", "--sizes", sizes, "--algorithms", algorithms, f"--rounds={rounds}"]
    words += ["--fresh"] if fresh else []
    given = {name: value for name, value in settings.items() if value is not None}
    job = Job(command=["mnist", *words], name="bench", **given)
    for problem in option_problems(job.prepared.request):
        raise BadInputError(problem.message, problem.hint)
    handle = job.submit()
    click.echo(f"hpclaunch: job {handle.id}", err=True)
    return handle
