"""``hpclaunch submit``: plan a job, show its script, check what it needs, submit it, wait for it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._job_options import SubmitCommand, command_words, given_settings, setting_options
from hpclaunch.cli._options import is_asked, options, refuse_mixtures, wants_document
from hpclaunch.cli._terminal import JobOutput, print_document, printed, terminal_table
from hpclaunch.errors import EXIT_BAD_INPUT, EXIT_FAILED
from hpclaunch.text_table import printable, printable_lines, to_stderr

if TYPE_CHECKING:
    from hpclaunch.host.host_interface import Host
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.job.record import JobRecord
    from hpclaunch.plan.request import Setting


@click.command(cls=SubmitCommand, params=setting_options())
@options("submit")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str | None,
    file: Path | None,
    explain: bool,
    dry_run: bool,
    plain: bool,
    save: Path | None,
    strict: bool,
    wait: bool | None,
    test_first: bool,
    interactive: bool,
    here: bool | None,
    host: str | None,
    sync: Path | None,
    **options: Any,
) -> None:
    """Submit a program, bound to CPUs and GPUs as the site needs: a Python file or shell script with its
    arguments, any command after --, or the bundled training (mnist).
    """
    from hpclaunch.job.prepare import SubmitMode, prepare
    from hpclaunch.job.settings_files import read_layers
    from hpclaunch.site.site_scheduler import no_submission

    _refuse_mixtures(ctx.params)
    words = command_words(job, ctx.meta.get("tail", ()))
    settings = given_settings(options, command=words or None)
    prepared = prepare(
        read_layers(settings, file, is_program=job is None, is_file="is_file" in ctx.meta),
        SubmitMode(here=here, interactive=interactive, host=host, sync=sync),
    )
    if prepared.request.model:
        from hpclaunch.api import Job
        from hpclaunch.cli.predict import does_not_fit

        plan = Job.of(prepared).dry_run()[0]
        ranks = plan.nodes * plan.tasks_per_node
        if warning := does_not_fit(prepared.request.model, prepared.request.site, ranks):
            click.echo(f"hpclaunch: {warning}", err=True)
    if dry_run or explain:
        shown = show(prepared, dry_run=dry_run, explain=explain, plain=plain, save=save)
        ok = shown and not no_submission(prepared.profile)
        ctx.exit(0 if ok or not strict else EXIT_BAD_INPUT)
    else:
        wait = prepared.waits if wait is None else wait
        ctx.exit(run(prepared, wait=wait, test_first=test_first))


def _refuse_mixtures(given: dict[str, Any]) -> None:
    if given["interactive"] and given["wait"] is False:
        raise click.UsageError("--interactive and --no-wait exclude each other")
    if is_asked("csv") and not given["explain"]:
        raise click.UsageError("--csv is for the table of --explain")
    refuse_mixtures("submit", given)


def show(
    prepared: Prepared,
    *,
    dry_run: bool,
    explain: bool = False,
    plain: bool = False,
    save: Path | None = None,
    only_text: bool = False,
) -> bool:
    """Print the script, the settings, or both (then the settings on stderr); with ``save`` write it, too.

    ``only_text``: also where the command is to print a document. Returns whether the job would be submitted.
    """
    from hpclaunch.api import Job

    job = Job.of(prepared)
    plan, script = job.save(save) if save else job.dry_run(plain=plain)
    if prepared.request.check:
        from hpclaunch.cli.check import say_what

        say_what(prepared)
    for warning in plan.warnings:
        click.echo(f"hpclaunch: {warning}", err=True)
    for problem in plan.problems:
        click.echo(f"hpclaunch: submitting this job is refused: {printable_lines(str(problem))}", err=True)
    if wants_document() and not only_text:
        import msgspec

        from hpclaunch.job.job_documents import DryRunDocument
        from hpclaunch.json_document import document_of

        more = {"request": msgspec.to_builtins(plan.request), "site": plan.profile.name, "script": script}
        print_document(document_of(DryRunDocument, plan, **more))
        return not plan.problems
    if explain:
        click.echo(settings_table(plan.settings, err=dry_run), err=dry_run)
    if dry_run:
        click.echo(script, nl=False)
    return not plan.problems


def settings_table(settings: tuple[Setting, ...], *, err: bool = False) -> str:
    """Return the settings as a table, one line per setting: name, value, origin; ``err``: for stderr."""
    return terminal_table(((s.name, s.value or "", s.origin) for s in settings), err=err)


def run(prepared: Prepared, *, wait: bool, test_first: bool) -> int:
    """Submit, wait if requested, report; return the exit code of the command."""
    from hpclaunch.api import Job
    from hpclaunch.cli._jobs import goes_on
    from hpclaunch.job.job_documents import SubmittedJobDocument, job_document

    job, result = Job.of(prepared, to_stderr), None
    with job.connected() as host:
        if prepared.request.check and not _checked(prepared, host):
            return EXIT_FAILED
        handle = job.submit(test_first=test_first)
        record = handle.record
        click.echo(f"hpclaunch: job {record.id} ({record.scheduler} {record.scheduler_id or ''})", err=True)
        if wait:
            output = JobOutput(sys.stderr.buffer if wants_document() else sys.stdout.buffer, handle.progress)
            cancels = prepared.waits  # it runs here; a night in the queue is not lost by one key
            with nullcontext() if cancels else goes_on(handle):
                try:
                    record = handle.wait(output.forward, interrupt_cancels=cancels, on_poll=output.poll)
                finally:
                    output.clear()
            result = handle.result()
    if record.binding and not record.binding.ok:
        click.echo(f"hpclaunch: {record.binding.finding}; see hpclaunch verify {record.id}", err=True)
    if not printed(job_document(SubmittedJobDocument, record, result=result)) and not wait:
        click.echo(f"{record.id}")
    return _exit_code(record) if wait else 0


def _checked(prepared: Prepared, host: Host) -> bool:
    """Return whether the job's requirements are met; if not, nothing is submitted or recorded."""
    from hpclaunch.check.check_report import NotSubmittedDocument
    from hpclaunch.cli.check import ask

    found = ask(prepared, host)
    if not found.ok:
        printed(NotSubmittedDocument(check=found))
    return found.ok


def _exit_code(record: JobRecord) -> int:
    """Return 0 if the job succeeded, the code for bad input if the bundled runner gave it, else 1."""
    if record.state == "done":
        return 0
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {printable(record.reason)}", err=True)
    if record.bundled and record.exit_code == EXIT_BAD_INPUT:
        return EXIT_BAD_INPUT
    return EXIT_FAILED
