"""``hpclaunch submit``: plan a job, show its script, submit it, wait for it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from hpclaunch.host.host_interface import Host
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.job.record import JobRecord
    from hpclaunch.plan.request import Setting
    from hpclaunch.plan.settings import JobSettings


# Title -> options below it in the help, by their names in the code; what is named nowhere comes last.
_GROUPS = {
    "What and where": ("site", "name", "file", "account", "queue", "directives"),
    "Size": (
        *("nodes", "tasks", "tasks_per_node", "gpus_per_task", "cpus_per_task", "threads_per_core"),
        *("time", "exclusive"),
    ),
    "Ranks": ("framework", "zero_stage", "timeline", "binding", "mpi", "python"),
    "Before it starts": ("check", "preflight", "exclude_bad_nodes", "space"),
    "Other jobs": ("after", "after_any", "array"),
    "Restarts and hangs": ("max_restarts", "warn_before", "idle_timeout"),
    "How": ("dry_run", "explain", "test_first", "wait", "interactive", "here", "as_json"),
}


class _SubmitCommand(click.Command):
    """A command that keeps everything after the first ``--`` apart, exactly as given; its help is grouped."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        rows = {option.name: option.get_help_record(ctx) for option in options}
        named = {name for names in _GROUPS.values() for name in names}
        for title, names in {**_GROUPS, "More": tuple(n for n in rows if n and n not in named)}.items():
            if records := [row for name in names if (row := rows.get(name))]:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["tail"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command(cls=_SubmitCommand)
@click.argument("job", required=False, metavar="[mnist] [-- ARGUMENTS | CMD ARG...]")
@click.option("--site", help="Site profile: a name (hpclaunch sites list) or the path of a YAML file.")
@click.option("--nodes", type=int, help="Nodes. Default: as many as the tasks need.")
@click.option("--tasks", type=int, help="Ranks of the whole job.")
@click.option("--tasks-per-node", type=int, help="Ranks on each node. Default: one for each GPU, else one.")
@click.option("--gpus-per-task", type=int, help="GPUs for each rank. Default: the node's, shared out.")
@click.option("--cpus-per-task", type=int, help="Cores for each rank. Default: all that fall to it.")
@click.option("--threads-per-core", type=int, help="Hardware threads used of each core. Default: 1.")
@click.option("--time", help="Walltime limit: 30m, 2h, 02:00:00, 1-12:00:00.")
@click.option("--account", help="Project that pays.")
@click.option(
    "--partition", "--queue", "queue", help="Partition, QOS or queue. Default: the first that fits."
)
@click.option("--name", help="Name of the job.")
@click.option("--file", type=click.Path(path_type=Path), help="Job file (YAML) with the same settings.")
@click.option("--mpi", help="MPI plugin for srun --mpi. Default: what the site documents.")
@click.option("--python", help="Interpreter for the bundled training on the target.")
@click.option("--exclusive/--no-exclusive", default=None, help="Whole nodes. Default: yes.")
@click.option(
    "--binding", type=click.Choice(["warn", "strict", "off"]), help="CPU-GPU binding. Default: warn."
)
@click.option(
    "--check/--no-check",
    default=None,
    help="Ask first for what the job needs, as hpclaunch check does; queue only what has it. Default: no.",
)
@click.option(
    "--preflight/--no-preflight",
    default=None,
    help="Look at each node before the ranks start; end where one fails. Default: no.",
)
@click.option(
    "--exclude-bad-nodes",
    is_flag=True,
    default=None,
    help="Submit again without the nodes that fail it, within --max-restarts (Slurm).",
)
@click.option("--space", multiple=True, metavar="FOLDER", help="Folder that must have room, for both.")
@click.option(
    "--max-restarts", type=int, help="Restarts from a checkpoint when the time is over. Default: 0."
)
@click.option(
    "--warn-before", help="How long before the limit the ranks are told to checkpoint. Default: 2m."
)
@click.option("--idle-timeout", help="End a job that neither prints nor beats for so long, such as 30m.")
@click.option(
    "--after", metavar="ID,...", help="Start when these jobs have ended well: ids of hpclaunch or scheduler."
)
@click.option("--after-any", is_flag=True, default=None, help="With --after: however they have ended.")
@click.option("--array", metavar="INDICES", help="A job for each index: 0-9, or 0-9%2 for two at once.")
@click.option("--timeline", metavar="FILE", help="Horovod timeline to write.")
@click.option(
    "--framework",
    type=click.Choice(["horovod", "torch", "deepspeed", "mpi4py", "none"]),
    help="What the ranks are made with: sets what it needs, nothing else.",
)
@click.option("--zero-stage", type=click.IntRange(0, 3), help="ZeRO stage of DeepSpeed's configuration.")
@click.option(
    "--sbatch-arg",
    "--directive",
    "directives",
    multiple=True,
    help="Extra directive, such as --mail-type=END.",
)
@click.option(
    "--test-only/--no-test-only",
    "test_first",
    default=True,
    help="Ask Slurm first whether it takes the job, and when it would start. Default: yes.",
)
@click.option("--explain", is_flag=True, help="Print each setting with where it came from; submit nothing.")
@click.option("--dry-run", is_flag=True, help="Print the script; submit nothing.")
@click.option("--wait/--no-wait", default=None, help="Wait for the end. Default: yes on local, no elsewhere.")
@click.option(
    "--interactive", is_flag=True, help="Slurm: allocate, run, show the output; Ctrl-C ends the allocation."
)
@click.option(
    "--here/--no-here", default=None, help="In the allocation of this shell (salloc). Default: if in one."
)
@click.option(
    "--host", help="Submit over ssh there: [user@]host[:port], or site for the profile's login host."
)
@click.option(
    "--sync",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take this folder along; the job runs in it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, all else on stderr.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str | None,
    file: Path | None,
    explain: bool,
    dry_run: bool,
    wait: bool | None,
    test_first: bool,
    interactive: bool,
    here: bool | None,
    host: str | None,
    sync: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Submit the bundled training (mnist) or any command, bound to CPUs and GPUs as the site needs.

    \b
    Examples:
      hpclaunch submit --site local --tasks 2 mnist -- --epochs 1
      hpclaunch submit --site lumi-g --nodes 2 --account project_465000001 --dry-run mnist
      hpclaunch submit --site polaris --account MyProject --time 30m -- python train.py --lr 0.1
    """
    from hpclaunch.job.prepare import SubmitMode, prepare
    from hpclaunch.job.settings_files import read_layers

    if interactive and wait is False:
        raise click.UsageError("--interactive and --no-wait exclude each other")
    settings = _command_line(job, ctx.meta.get("tail", ()), options)
    prepared = prepare(
        read_layers(settings, file), SubmitMode(here=here, interactive=interactive, host=host, sync=sync)
    )
    if dry_run or explain:
        show(prepared, dry_run=dry_run, explain=explain, as_json=as_json)
    else:
        wait = prepared.waits if wait is None else wait
        ctx.exit(run(prepared, wait=wait, test_first=test_first, as_json=as_json))


def _command_line(job: str | None, tail: tuple[str, ...], options: dict[str, Any]) -> JobSettings:
    from hpclaunch.plan.settings import JobSettings

    if job not in (None, "mnist"):
        raise click.UsageError(
            f"unknown job {job!r}: it is mnist, or a command after -- (hpclaunch submit -- {job})"
        )
    words = ("mnist", *tail) if job else tail
    after = tuple(filter(None, re.split(r"[,\s]+", options.pop("after") or "")))
    space = options.pop("space") or None
    return JobSettings(command=words or None, after=after or None, space=space, **options)


def show(prepared: Prepared, *, dry_run: bool, explain: bool, as_json: bool) -> None:
    """Print the script, the settings, or both (then the settings on stderr)."""
    from hpclaunch.job import prepare

    plan, script = prepare.dry_run(prepared)
    if prepared.request.check:
        from hpclaunch.cli._submit_check import say_what

        say_what(prepared)
    for warning in plan.warnings:
        click.echo(f"hpclaunch: {warning}", err=True)
    if as_json:
        settings = [{"name": s.name, "value": s.value, "origin": s.origin} for s in plan.settings]
        click.echo(json.dumps({"site": plan.profile.name, "settings": settings, "script": script}))
        return
    if explain:
        click.echo(settings_table(plan.settings), err=dry_run)
    if dry_run:
        click.echo(script, nl=False)


def settings_table(settings: tuple[Setting, ...]) -> str:
    """Lay settings out, one line each: name, value, where it came from."""
    from hpclaunch.text_table import text_table

    return text_table(((s.name, s.value or "", s.origin) for s in settings), max_widths={1: 40})


def run(prepared: Prepared, *, wait: bool, test_first: bool, as_json: bool) -> int:
    """Submit, wait if asked, report; return the exit code of the command."""
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.follow_job import result_of, wait_job
    from hpclaunch.job.start_job import start
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.registry import get_scheduler

    store, result = Store(), None
    with open_host(prepared.host) as host:
        if prepared.request.check and not _checked(prepared, host, as_json=as_json):
            return EXIT_FAILED
        record, plan = start(prepared, store, host, test_first=test_first)
        for warning in plan.warnings:
            click.echo(f"hpclaunch: {warning}", err=True)
        click.echo(f"hpclaunch: job {record.id} ({record.scheduler} {record.scheduler_id})", err=True)
        if wait:
            output = sys.stderr.buffer if as_json else sys.stdout.buffer

            def forward(chunk: bytes) -> None:
                output.write(chunk)
                output.flush()

            try:
                record = wait_job(
                    store, host, get_scheduler(record.scheduler), record, forward, interrupt_cancels=True
                )
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
            result = result_of(host, record)
    if record.binding and not record.binding.ok:
        click.echo(f"hpclaunch: {record.binding.finding}; see hpclaunch verify {record.id}", err=True)
    if as_json:
        document = {"id": record.id, "state": record.state, "exit_code": record.exit_code, "result": result}
        click.echo(json.dumps(document))
    elif not wait:
        click.echo(f"{record.id}")
    return _exit_code(record) if wait else 0


def _checked(prepared: Prepared, host: Host, *, as_json: bool) -> bool:
    """Return whether what the job needs is there; where not, nothing is submitted and there is no record."""
    import msgspec

    from hpclaunch.cli._submit_check import ask

    found = ask(prepared, host)
    if not found.ok and as_json:
        document = {"id": None, "state": "not submitted", "exit_code": None, "result": None}
        click.echo(json.dumps({**document, "check": msgspec.to_builtins(found)}))
    return found.ok


def _exit_code(record: JobRecord) -> int:
    """0 when the job ended well; the bundled runner's own "bad input" is handed on; else 1."""
    if record.state == "done":
        return 0
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {record.reason}", err=True)
    if record.bundled and record.exit_code == EXIT_BAD_INPUT:
        return EXIT_BAD_INPUT
    return EXIT_FAILED
