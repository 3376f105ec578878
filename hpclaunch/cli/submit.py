"""``hpclaunch submit``: plan a job, show its script, check what it needs, submit it, wait for it."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from hpclaunch.cli._in_and_out import print_document, printed, wants_document
from hpclaunch.cli._options import complete_site, is_asked, options, refuse_mixtures
from hpclaunch.cli._typed_options import check_typed, foreign_option, own_words
from hpclaunch.errors import EXIT_BAD_INPUT, EXIT_FAILED
from hpclaunch.package_data import note_text
from hpclaunch.plan.settings_table import Row, rows
from hpclaunch.text_table import printable, printable_lines

if TYPE_CHECKING:
    from hpclaunch.check.check_report import Report
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.host.host_interface import Host
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.job.record import JobRecord
    from hpclaunch.plan.request import JobRequest, Setting
    from hpclaunch.plan.settings import JobSettings

    _Names = click.Choice[str]
else:
    _Names = click.Choice


def _help_all(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_ALL = "hpclaunch.help-all"
_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help_all,
    help="Show all options and exit.",
)


class SettingsCommand(click.Command):
    """A command with the options of a job's settings; its help is grouped."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` where ``--help`` shows only some of them."""
        *found, usual = super().get_params(ctx)
        return [*found, *([_HELP_ALL] if _short_help(ctx) else []), usual]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: the usual ones, or all in groups, the settings as their table groups them."""
        if (usual := _short_help(ctx)) and not ctx.meta.get(_ALL):
            self._format_usual(ctx, formatter, usual)
            return
        titles = {row.name: row.group for row in rows()}
        titles["file"] = titles["site"]
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
                groups.setdefault(titles.get(option.name or "", "Submission"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def _format_usual(self, ctx: click.Context, formatter: click.HelpFormatter, usual: list[str]) -> None:
        """Write these options and those of the help, of each the first sentence."""
        *found, help_all, own = self.get_params(ctx)
        shown = [*(option for option in found if option.name in usual), help_all, own]
        records = filter(None, (option.get_help_record(ctx) for option in shown))
        with formatter.section("Usual options"):
            formatter.write_dl(
                [(words, f"{text} ".partition(". ")[0].rstrip(". ") + ".") for words, text in records]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; what another tool's users type is refused with the words of ours."""
        given = tuple(args)  # the parser empties the list
        check_typed(self, ctx, given)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            if told := foreign_option(self, ctx, given):
                raise click.UsageError(told, ctx) from None
            raise


def _short_help(ctx: click.Context) -> list[str]:
    """Return the names of the options that ``--help`` of this command shows; none: it shows all."""
    from hpclaunch.cli.main import TABLE

    names: list[str] = TABLE["short help"].get(ctx.command_path.partition(" ")[2], [])
    return names


class SubmitCommand(SettingsCommand):
    """A command that takes a program: what is after the first ``--``, or a file such as train.py.

    A file ends the options: the words after it are the program's. The first ``--`` is not one of them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the program's words into ``ctx.meta["tail"]``; parse the rest."""
        tail, words = list[str](), args
        if "--" in args:
            at = args.index("--")
            words, tail = args[:at], args[at + 1 :]
        at = self._file_at(ctx, words)
        if at < len(words):
            self._refuse_own_options(ctx, words, at)
            ctx.meta["is_file"] = True
        ctx.meta["tail"] = (*words[at:], *tail)
        ctx.allow_extra_args = True
        try:
            super().parse_args(ctx, words[:at])
        except click.NoSuchOption as error:
            self._explain(ctx, error, words)
            raise
        _refuse_words(ctx)
        return []

    def _explain(self, ctx: click.Context, error: click.NoSuchOption, words: list[str]) -> None:
        """Raise UsageError for an unknown option that may be the program's."""
        named = bool(words) and not words[0].startswith("-")
        start = "mnist " if "mnist" in words else ""
        if error.possibilities and not (named or start):
            return
        what = "options of the training" if start else "a program and its options"
        hint = f"{what} come after --: hpclaunch submit {start}-- {error.option_name} ..."
        raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None

    def _file_at(self, ctx: click.Context, words: list[str]) -> int:
        """Return the position of a file that Python or a shell reads, if the first argument is one."""
        if not any("." in word for word in words):
            return len(words)
        from hpclaunch.plan.script_commands import is_script_name

        if not any(map(is_script_name, words)):
            return len(words)
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            found, behind, _ = parser.parse_args(list(words))
        except click.UsageError:  # which the parser of all words reports
            return len(words)
        job = found.get("job")
        is_file = isinstance(job, str) and is_script_name(job)
        return len(words) - len(behind) - 1 if is_file else len(words)

    def _refuse_own_options(self, ctx: click.Context, words: list[str], at: int) -> None:
        """Raise UsageError with both spellings where options of ours stand after the file."""
        from shlex import join

        ours, theirs = own_words(self.get_params(ctx), words[at + 1 :])
        if not ours:
            return
        file, named = words[at], ours[0].partition("=")[0]
        front = "python" if file.endswith(".py") else "bash"
        own = join([*words[:at], *ours, file, *theirs])
        raise click.UsageError(
            f"{named} stands after {file}: is it meant for hpclaunch or for the program?\n"
            f"for hpclaunch: {ctx.command_path} {own}\n"
            f"for the program: {ctx.command_path} {join([*words[:at], '--', front, *words[at:]])}",
            ctx,
        )


def _refuse_words(ctx: click.Context) -> None:
    """Raise UsageError for words in front of ``--`` that are neither options nor a job."""
    from shlex import join

    words = [word for word in (ctx.params.get("job"), *ctx.args) if word]
    if words and (name := words[0].lstrip("\u2010\u2011\u2012\u2013\u2014\u2212")) != words[0]:
        raise click.UsageError(f"{words[0]} begins with a dash of a text program: type --{name}", ctx)
    if ctx.args:
        begin = " ".join((*(words[:1] if words[0] == "mnist" else ()), "--"))
        rest = join(words[1:] if words[0] == "mnist" else words)
        raise click.UsageError(note_text("submit: words", rest=rest, begin=begin), ctx)


class _Choice(_Names):
    """One of some names, in any case; of another one it says which it may be."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as the table has it; raises BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from difflib import get_close_matches  # only messages need it

            near = get_close_matches(str(value).lower(), [str(name) for name in self.choices], n=1)
            if not near:
                raise
            words = f"{error.message} Did you mean {near[0]}?"
            raise click.BadParameter(words, param=param, ctx=ctx) from None


def _option(row: Row) -> click.Option:
    """Return the option of a setting; its value is None or () where it is left out."""
    name, kind = row.name.replace("_", "-"), row.kind
    usual, form = f"--{name}/--no-{name}" if kind is bool else f"--{name}", get_origin(kind)
    values: Any = click.IntRange(*row.limits) if row.limits else kind if kind in (int, float) else None
    return click.Option(
        [*(row.options or (usual,)), row.name],
        type=_Choice(get_args(kind)) if form is Literal else values,
        is_flag=kind is bool,
        default=None,
        multiple=form in (tuple, dict) and not row.commas,
        callback=_split if row.commas else _pairs if form is dict else None,
        metavar=row.metavar,
        help=row.help,
        shell_complete=complete_site if row.name == "site" else None,
    )


def _split(_ctx: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Split at commas and blanks, but not inside of ``n[1,3-5]``. Raises BadParameter for an empty text."""
    if value == "":
        raise click.BadParameter("it is empty")
    return tuple(filter(None, re.split(r"[,\s]+(?![^\[\]]*\])", value or "")))


def _pairs(_ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """Return NAME=VALUE texts as a mapping; of two with the same name the last one counts."""
    pairs = dict[str, str]()
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param=option)
        pairs[name] = value
    return pairs or None


def setting_options(leave_out: tuple[str, ...] = ()) -> list[click.Parameter]:
    """Return the options of all settings that have one."""
    return [_option(row) for row in rows() if row.group and row.name not in leave_out]


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

    _refuse_mixtures(ctx.params)
    words = command_words(job, ctx.meta.get("tail", ()))
    settings = given_settings(options, command=words or None)
    prepared = prepare(
        read_layers(settings, file, is_program=job is None, is_file="is_file" in ctx.meta),
        SubmitMode(here=here, interactive=interactive, host=host, sync=sync),
    )
    if prepared.request.model:
        _warn_of_memory(prepared)
    if dry_run or explain:
        ok = show(prepared, dry_run=dry_run, explain=explain, plain=plain, save=save)
        ctx.exit(0 if ok or not strict else EXIT_BAD_INPUT)
    else:
        wait = prepared.waits if wait is None else wait
        ctx.exit(run(prepared, wait=wait, test_first=test_first))


def _warn_of_memory(prepared: Prepared) -> None:
    """Say if the network that the job names does not fit the GPUs. Raises BadInputError if it is unknown."""
    from hpclaunch.api import Job
    from hpclaunch.cli.predict import does_not_fit

    plan = Job.of(prepared).dry_run()[0]
    words, ranks = prepared.request.model, plan.nodes * plan.tasks_per_node
    if warning := does_not_fit(words, prepared.request.site, ranks):
        click.echo(f"hpclaunch: {warning}", err=True)


def _refuse_mixtures(given: dict[str, Any]) -> None:
    if given["interactive"] and given["wait"] is False:
        raise click.UsageError("--interactive and --no-wait exclude each other")
    if is_asked("csv") and not given["explain"]:
        raise click.UsageError("--csv is for the table of --explain")
    refuse_mixtures("submit", given)


def command_words(job: str | None, tail: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a job: the bundled training with its options, or what is after the ``--``."""
    if job not in (None, "mnist"):
        raise click.UsageError(note_text("submit: unknown job", job=job))
    return ("mnist", *tail) if job else tail


def given_settings(options: dict[str, Any], **more: Any) -> JobSettings:
    """Return the settings of the options that were given."""
    from hpclaunch.plan.settings import JobSettings

    given = {name: value for name, value in options.items() if value not in (None, ())}
    return JobSettings(**given, **more)


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
        say_what(prepared)
    for warning in plan.warnings:
        click.echo(f"hpclaunch: {warning}", err=True)
    for problem in plan.problems:
        click.echo(f"hpclaunch: submitting this job is refused: {printable_lines(str(problem))}", err=True)
    if wants_document() and not only_text:
        from hpclaunch.job.job_documents import dry_run_document

        print_document(dry_run_document(plan, script))
        return not plan.problems
    if explain:
        click.echo(settings_table(plan.settings, err=dry_run), err=dry_run)
    if dry_run:
        click.echo(script, nl=False)
    return not plan.problems


def settings_table(settings: tuple[Setting, ...], *, err: bool = False) -> str:
    """Return the settings as a table, one line per setting: name, value, origin; ``err``: for stderr."""
    from hpclaunch.cli._terminal import terminal_table

    return terminal_table(((s.name, s.value or "", s.origin) for s in settings), err=err)


def run(prepared: Prepared, *, wait: bool, test_first: bool) -> int:
    """Submit, wait if requested, report; return the exit code of the command."""
    from hpclaunch.api import Job
    from hpclaunch.cli._jobs import goes_on
    from hpclaunch.cli._terminal import JobOutput
    from hpclaunch.job.job_documents import submitted_document
    from hpclaunch.text_table import to_stderr

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
    if not printed(submitted_document(record, result)) and not wait:
        click.echo(f"{record.id}")
    return _exit_code(record) if wait else 0


def _checked(prepared: Prepared, host: Host) -> bool:
    """Return whether the job's requirements are met; if not, nothing is submitted or recorded."""
    from hpclaunch.check.check_report import NotSubmittedDocument

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


def check_request_for(prepared: Prepared) -> CheckRequest:
    """Return the check of what the job needs.

    It includes a Horovod build only if the framework is Horovod, and a start of ranks only if they use MPI.
    """
    from hpclaunch.check.check_report import Requirement
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.plan.frameworks import interpreter, uses_mpi

    request = prepared.request
    horovod = request.framework == "horovod"
    by_launcher = Requirement(names=("mpi",), reason="the controller of ranks that a launcher starts")
    return CheckRequest(
        profile=prepared.profile,
        site=request.site,
        environment=request.environment,
        python=_python(prepared) or interpreter(request, prepared.profile),
        mpi_plugin=request.mpi,
        space=request.space,
        extra_requirements=(by_launcher,) if horovod else (),
        horovod=horovod,
        ranks_use_mpi=uses_mpi(request, prepared.settings),
        module=_module(request),
        gpu_build=False,  # a job may leave the GPUs out
    )


def _python(prepared: Prepared) -> str | None:
    """Return this interpreter for the bundled runner on this machine."""
    from hpclaunch.job.job_script import python_here

    bundled = prepared.request.command.bundled and prepared.request.python is None
    return python_here(prepared.profile) if bundled else None


def _module(request: JobRequest) -> str | None:
    from hpclaunch.plan.layout import framework_of

    if request.command.bundled:
        return "mpi4py"
    return None if request.framework == "horovod" else framework_of(request).module


def say_what(prepared: Prepared) -> None:
    """Print what would be checked; a dry run checks nothing."""
    from hpclaunch.check.run_check import requirements

    check_request = check_request_for(prepared)
    needs = [f"{need} ({need.reason})" for need in requirements(check_request) if need.names != ("imports",)]
    needs += [f"room in {folder}" for folder in check_request.space]
    module = f"that {check_request.python} imports {check_request.module}" if check_request.module else ""
    wanted = "; ".join(filter(None, ("the job's environment", module, *needs)))
    click.echo(f"hpclaunch: before queueing --check would check: {wanted}", err=True)


def ask(prepared: Prepared, host: Host) -> Report:
    """Run the check; print what is missing, with remedies. Raises RefusedError."""
    import msgspec

    from hpclaunch.check.check_report import unmet_requirements
    from hpclaunch.check.run_check import requirements, run_check
    from hpclaunch.cli.check import verdict_table
    from hpclaunch.job.mpi_plugin import choose_plugin

    check_request = check_request_for(prepared)
    if prepared.allocation and (
        chosen := choose_plugin(prepared.request, prepared.profile, host, prepared.settings)
    ):
        check_request = msgspec.structs.replace(check_request, mpi_plugin=chosen.name)
    # This shell's variables about an allocation do not describe another host.
    found = run_check(host, check_request, os.environ if prepared.allocation else {})
    if not found.ok:
        unmet = unmet_requirements(found, requirements(check_request))
        click.echo(verdict_table(found, unmet, err=True), err=True)
        click.echo("hpclaunch: nothing was submitted: --check found missing requirements", err=True)
    return found
