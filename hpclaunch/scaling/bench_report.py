"""The times that ``hpclaunch bench`` measured: as a table, as CSV and as a picture (SVG). Pure."""

from collections.abc import Iterator

import msgspec

from hpclaunch.amounts import counted, grouped
from hpclaunch.errors import BadInputError
from hpclaunch.pages.render_page import render
from hpclaunch.scaling.link_tests import COPY, Bench, BenchRow
from hpclaunch.scaling.study_picture import one_plot
from hpclaunch.text_table import csv_row, text_table

_LIBRARY = "mpi"
_HEADER = ("bytes", "algorithm", "buffer", "median us", "bus GB/s", "against MPI", "of the limit")
_DROP = ("buffer", "of the limit", "bus GB/s")


def bench_of(result: object, job: str) -> Bench:
    """Return a job's result as the document; BadInputError: the job was no benchmark."""
    try:
        return msgspec.convert(result, Bench)
    except msgspec.ValidationError as error:
        raise BadInputError(f"job {job} is not one of hpclaunch bench: {error}") from None


def as_text(bench: Bench, width: int | None = None) -> str:
    """Return the table for a terminal, and in a sentence what its last two columns compare with."""
    cells = []
    for row in bench.rows:
        figures = (None if row.algorithm == COPY else row.busbw_gb_s, *_shares(bench, row))
        shown = [
            "-" if figure is None else form.format(figure)
            for figure, form in zip(figures, ("{:.3f}", "{:.2f} x", "{:.1%}"), strict=True)
        ]
        cells.append([f"{row.bytes:,}", row.algorithm, row.buffer, f"{row.median_us:,.1f}", *shown])
    library = bench.versions.get(_LIBRARY, "MPI").splitlines()[0].partition(",")[0]
    return (
        f"{text_table(cells, _HEADER, width=width, drop=_DROP)}\n"
        f"{_place(bench)}, {bench.date[:10]}; float32 on CPUs, medians of {counted(bench.rounds, 'round')}.\n"
        f"Against MPI: the speed, where that of MPI_Allreduce ({library}) is 1.\n"
        "Of the limit: that of memory, where all ranks copy an array of this size at once."
    )


def _place(bench: Bench) -> str:
    return f"{counted(bench.ranks, 'rank')} on {counted(len(bench.ranks_by_host), 'host')}"


def as_csv(bench: Bench) -> str:
    """Return the rows as CSV, with the two comparisons as numbers."""
    fields = ("bytes", "algorithm", "buffer", "ranks", "median_us", "algbw_gb_s", "busbw_gb_s")
    rows = ([*(getattr(row, field) for field in fields), *_shares(bench, row)] for row in bench.rows)
    return "\n".join(map(csv_row, ((*fields, "against_mpi", "of_memory_limit"), *rows)))


def _shares(bench: Bench, row: BenchRow) -> Iterator[float | None]:
    """Yield the speed against MPI's own allreduce and against a copy in memory; None: not measured."""
    for name in (_LIBRARY, COPY):
        times = [one.median_us for one in bench.rows if (one.algorithm, one.bytes) == (name, row.bytes)]
        yield min(times) / row.median_us if times and row.algorithm != COPY else None


def as_svg(bench: Bench) -> str:
    """Return the microseconds by size, a line for each algorithm and kind of buffer, on logarithmic axes."""
    lines = grouped(((row.algorithm, row.buffer), (row.bytes, row.median_us)) for row in bench.rows)
    sizes = sorted({row.bytes for row in bench.rows})
    times = [row.median_us for row in bench.rows]
    facts = {"title": f"Allreduce of {_place(bench)}", "sizes": sizes, "lines": lines, "copy": COPY}
    return render("bench.svg.j2", **facts, **one_plot(min(times), max(times), sizes, legend=190))
