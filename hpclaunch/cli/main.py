"""The ``hpclaunch`` group. A command's module is imported only when the command is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from hpclaunch import __version__
from hpclaunch.errors import EXIT_FAILED, EXIT_INTERRUPTED, HpclaunchError
from hpclaunch.text_table import printable

# Command -> its line in the help; its module in hpclaunch.cli has the same name. Listing them imports none.
COMMANDS = {
    "submit": "Plan a job, show or submit its script, wait for it.",
    "topology": "Show a node's topology, and the binding of ranks on it.",
    "sites": "List, show, validate and detect site profiles.",
    "jobs": "List the jobs that were submitted from here.",
    "status": "Show the state of a job.",
    "logs": "Print the output of a job.",
    "fetch": "Bring files of a job to this machine.",
    "wait": "Wait for a job; exit with its status.",
    "cancel": "Cancel jobs.",
    "forget": "Remove the records of ended jobs.",
    "resubmit": "Submit the request of a recorded job again.",
    "lint": "List what is wrong with a batch script.",
    "check": "Check that Horovod, MPI and launcher meet the job's requirements.",
    "env": "Show how to install the software that a job needs on a site.",
    "verify": "Check that each rank of a job got its binding.",
    "advise": "Give advice on data: packing, striping, staging.",
    "completion": "Print the shell completion script.",
}


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports a module only when its command runs."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an error is printed as one message, with a traceback only with --debug."""
        try:
            return super().invoke(ctx)
        except HpclaunchError as error:
            if ctx.params["debug"]:
                raise
            lines = str(error).splitlines()  # they may hold what a scheduler, a host or a file says
            click.echo("hpclaunch: " + "\n".join(map(printable, lines)), err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.Abort, click.exceptions.Exit, OSError):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            click.echo(f"hpclaunch: internal error: {type(error).__name__}: {error}", err=True)
            click.echo("  please report it with the output of `hpclaunch --debug ...`", err=True)
            ctx.exit(EXIT_FAILED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import ``hpclaunch.cli.NAME`` and return its ``command``."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"hpclaunch.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hpclaunch")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def program(debug: bool) -> None:
    """Take a distributed deep-learning job to a supercomputer, bound, configured, verified and measured.

    Example: hpclaunch submit --site local --tasks 2 mnist
    """


def main() -> None:
    """Run the command line and exit with its code: 130 after Ctrl-C, 0 if the reader of the output left."""
    try:
        code = program.main(prog_name="hpclaunch", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the last flush must not fail again
        code = 0
    sys.exit(code)
