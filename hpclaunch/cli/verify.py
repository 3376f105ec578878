"""``hpclaunch verify``: check that each rank of a job got its binding, also of a job of others."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.amounts import grouped
from hpclaunch.cli._jobs import named
from hpclaunch.cli._options import check_picture_name, options, refuse_mixtures
from hpclaunch.cli._terminal import echo_text, printed, terminal_table, terminal_width, write_picture
from hpclaunch.errors import EXIT_FAILED, BadInputError, note_text
from hpclaunch.text_table import printable

if TYPE_CHECKING:
    from hpclaunch.observe.attached_ranks import AttachDocument, RankDetails
    from hpclaunch.site.schema import SiteProfile


@click.command()
@options("verify")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str | None,
    attach: str | None,
    site: str | None,
    summary: bool,
    picture: Path | None,
    node: str | None,
) -> None:
    """Compare the binding that each rank got with the plan; inside a job, for that job."""
    refuse_mixtures("verify", ctx.params)
    if attach is not None:
        ctx.exit(0 if verify_attached(attach, site, summary=summary) else EXIT_FAILED)
    check_picture_name(picture)
    ctx.exit(0 if _recorded(job, picture, node) else EXIT_FAILED)


def _recorded(job: str | None, picture: Path | None, node: str | None) -> bool:
    """Print the verdict on a job of hpclaunch; return whether every rank got its binding."""
    from hpclaunch.job.job_documents import VerifyDocument
    from hpclaunch.job.record import BindingVerdict, table
    from hpclaunch.json_document import document_of

    handle = named(job or os.environ.get("HPCLAUNCH_JOB_ID") or "last")
    found = handle.binding() or BindingVerdict(
        ok=True, finding="no binding was planned: it was left to the launcher", ranks=()
    )
    note = note_text("binding: looked at") if found.ranks else None
    if not printed(document_of(VerifyDocument, found, id=handle.id, note=note)):
        if found.ranks:
            click.echo(table(found.ranks, terminal_width()))
        echo_text("\n".join(filter(None, (found.finding, note))))
    if picture is not None:
        from hpclaunch.observe.binding_picture import binding_picture

        drawing, drawn = binding_picture(handle.record, found.ranks, node)
        write_picture(picture, drawing, f" of {drawn}")
    return found.ok


def verify_attached(job: str, site: str | None, *, summary: bool) -> bool:
    """Look into a running job and print the verdict; return whether it is good."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.observe.attached_nodes import read_nodes_of
    from hpclaunch.observe.attached_ranks import MANY_THREADS, judge_attached
    from hpclaunch.site.profile_node import site_topology
    from hpclaunch.site.site_scheduler import site_launcher, site_scheduler

    job, profile, planned = _asked(job, site)
    running, nodes = read_nodes_of(
        LocalHost(), site_scheduler(profile), site_launcher(profile), job, os.environ
    )
    found = judge_attached(running.id, nodes, profile, site_topology(profile), planned)
    if not printed(found):
        if summary:
            click.echo(_summary(found))
        else:
            _print_ranks(found)
        echo_text(found.finding)
        for remedy in found.remedies:
            echo_text(f"  {printable(remedy)}")
        for rule in found.rules:
            echo_text(f"  rule {rule}: hpclaunch docs reference/lint, or hpclaunch lint --rules")
        if found.right and any(one.wrong and one.verdict != MANY_THREADS for one in found.ranks):
            echo_text(f"right would be: {found.right}")
        if found.note:
            echo_text(f"note: {found.note}")
    return found.ok


def _asked(job: str, site: str | None) -> tuple[str, SiteProfile, dict[int, str]]:
    """Return the scheduler's id, the site, and of a job of hpclaunch, by its name or id, the planned CPUs."""
    from hpclaunch.job.store import NoSuchJobError
    from hpclaunch.site.detect import detect_here
    from hpclaunch.site.load_profile import load_site

    planned: dict[int, str] = {}
    if not re.fullmatch(r"\d+([._[+]\S*)?", job):
        with suppress(NoSuchJobError):
            handle = named(job)
            record = handle.record
            job, site = record.scheduler_id or job, site or record.request.get("site", record.site)
            verdict = None if record.array else handle.binding()
            planned = {one.rank: one.planned for one in verdict.ranks} if verdict else {}
    site = site or detect_here().site
    if site is None:
        raise BadInputError.case("attach: no site")
    return job, load_site(site), planned


def _print_ranks(found: AttachDocument) -> None:
    """Print a line about the binding of each rank and one about what else it has, step by step."""
    from hpclaunch.job.record import table

    steps = dict.fromkeys(one.step for one in found.details)
    for step in steps:
        if len(steps) > 1:
            click.echo(f"{step}:" if step.startswith("launch") else f"step {step}:")
        pairs = zip(found.ranks, found.details, strict=True)
        ranks = [(report, details) for report, details in pairs if details.step == step]
        click.echo(table((report for report, _ in ranks), terminal_width(), looked_again=False))
        for _, details in ranks:
            echo_text(printable(_details(details)))


def _summary(found: AttachDocument) -> str:
    """Return a line for each node, step and verdict, with the number of ranks and the first of them."""
    pairs = zip(found.ranks, found.details, strict=True)
    kinds = grouped(((report.host, details.step, report.verdict), report.rank) for report, details in pairs)
    rows: list[tuple[str, ...]] = []
    for (host, step, verdict), ranks in kinds.items():
        which = ",".join(map(str, ranks[:4])) + ",..." * (len(ranks) > 4)
        rows.append((host, step or "-", str(len(ranks)), verdict, which))
    return terminal_table(rows, ("host", "step", "ranks", "verdict", "which"), drop=("which", "step"))


def _details(one: RankDetails) -> str:
    cpus = ", ".join(f"{count} on {cpus}" for cpus, count in sorted(one.thread_cpus.items()))
    shown = [f"rank {one.rank}: pid {one.pid} {' '.join(one.program)}", f"{one.threads} threads: {cpus}"]
    shown.append(f"open: {' '.join(one.devices) or 'no device of a GPU or network card'}")
    about = ("NCCL_", "MPICH_", "UCX_", "FI_", "GLOO_", "OMP_", "KMP_")
    pairs = [f"{name}={value}" for name, value in sorted(one.variables.items()) if name.startswith(about)]
    return "; ".join([*shown, *pairs])
