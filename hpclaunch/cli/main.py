"""The ``hpclaunch`` group. A command's module is imported only when the command is called."""

import json
import os
import sys
from importlib import import_module

import click

from hpclaunch import __version__, errors
from hpclaunch.cli._options import options
from hpclaunch.package_data import commit, text_beside
from hpclaunch.text_table import printable, printable_lines

TABLE = json.loads(text_beside(__file__, "commands.json"))
"""``listed``: title -> command -> its line in the help; ``unlisted``: such lines that the help does not show.

``former``: name that a command had -> its name; ``meant``: word that people try -> words to type instead;
``misread``: letter, value that shows another meaning, on sites of which schedulers (none: all), answer;
``short help``: command -> names of the options that its ``--help`` shows, where ``--help-all`` shows all;
``site groups``: status of a profile -> heading in the list of sites.
"""
COMMANDS: dict[str, str] = {n: line for part in TABLE["listed"].values() for n, line in part.items()}
COMMANDS |= TABLE["unlisted"]
"""Command -> its line; its module in hpclaunch.cli has that name. Listing them imports none."""
_BUILT = f" (commit {built})" if (built := commit()) else ""
_WORDS = "hpclaunch.words"
_ERROR_KINDS = {errors.EXIT_BAD_INPUT: "bad input", errors.EXIT_REFUSED: "refused"}
"""Exit code -> ``kind`` of the error in JSON."""


class _BadValueError(click.BadParameter):
    """A value that an option cannot have: bad input, as the same one in a job file."""

    exit_code = errors.EXIT_BAD_INPUT


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports a module only when its command runs."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an error is printed as one message, with a traceback only with --debug."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
                error = _BadValueError(error.message, error.ctx, error.param, error.param_hint)
            kind = _ERROR_KINDS.get(error.exit_code, "usage")
            _print_error(ctx, kind, error.format_message(), None, error.exit_code)
            raise error from None
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except BrokenPipeError:
            _discard_output()
            ctx.exit(0)
        except Exception as error:
            if ctx.params["debug"]:
                import traceback  # errors only

                click.echo(traceback.format_exc(), err=True, nl=False)
            code = _report(error)
            message, hint = getattr(error, "message", str(error)), getattr(error, "hint", None)
            _print_error(ctx, _ERROR_KINDS.get(code, "failed"), message, hint, code)
            ctx.exit(code)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the words of the command line: what was requested as JSON fails as JSON."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of an unknown one say which it may be."""
        args = [TABLE["former"].get(args[0], args[0]), *args[1:]] if args else args
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches  # only messages need it

            word = name.lower()
            near = TABLE["meant"].get(word) or next(iter(get_close_matches(word, COMMANDS, n=1)), None)
            hint = f"did you mean hpclaunch {near}?" if near else "hpclaunch --help lists the commands"
            raise click.UsageError(f"no command is named {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import ``hpclaunch.cli.NAME`` and return its ``command``."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"hpclaunch.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing their modules."""
        for title, lines in TABLE["listed"].items():
            with formatter.section(title):
                formatter.write_dl(list(lines.items()))


def _print_error(ctx: click.Context, kind: str, message: str, hint: str | None, code: int) -> None:
    """With ``--json`` among the options of a command, print the error as the one document on stdout."""
    words = ctx.meta[_WORDS]
    if "--json" in words[: words.index("--") if "--" in words else len(words)]:
        error = {"kind": kind, "message": message, "hint": hint, "exit_code": code}
        click.echo(json.dumps({"error": error}))


def _report(error: Exception) -> int:
    if isinstance(error, errors.HpclaunchError):
        # It may hold what a scheduler, a host or a file says.
        click.echo(f"hpclaunch: {printable_lines(str(error))}", err=True)
        return error.exit_code
    if isinstance(error, FileNotFoundError) and not error.filename and not _has_folder():
        click.echo("hpclaunch: the folder that you are in has been removed: go to another one", err=True)
        return errors.EXIT_BAD_INPUT
    if isinstance(error, OSError):
        place = printable(str(error.filename)) if error.filename else "the output or a file"
        click.echo(f"hpclaunch: {place}: {error.strerror or error}", err=True)
        return errors.EXIT_FAILED
    click.echo(f"hpclaunch: internal error: {type(error).__name__}: {error}", err=True)
    click.echo("  please report it with the output of `hpclaunch --debug ...`", err=True)
    return errors.EXIT_FAILED


def _has_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__ + _BUILT, "-V", "--version", prog_name="hpclaunch")
@options("hpclaunch")
@click.pass_context
def program(ctx: click.Context, /, debug: bool, color: str) -> None:
    """Take a distributed deep-learning job to a supercomputer, bound, configured, verified and measured."""
    if color != "auto":
        ctx.color = color == "always"
    elif os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # no-color.org
        ctx.color = False  # else colours where the output is a terminal


def main() -> int:
    """Run the command line and return its code: 130 after Ctrl-C, 0 if the reader of the output left."""
    _open_closed_streams()
    try:
        code = program.main(prog_name="hpclaunch", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except OSError as error:  # of the program's own options, such as --help
        code = _report(error)
    except (click.Abort, KeyboardInterrupt):
        code = errors.EXIT_INTERRUPTED
    return _flushed(code or 0)


def _open_closed_streams() -> None:
    """Give a closed stdin, stdout or stderr (``hpclaunch jobs >&-``) its number back: a file may get it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))


def _flushed(code: int) -> int:
    """Write the rest of the output; return the exit code, also where that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        return code or _report(error)  # one that failed before has said so
    return code


def _discard_output() -> None:
    """Send what is left of the output nowhere: the last flush must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
