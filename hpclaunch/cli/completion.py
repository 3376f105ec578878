"""``hpclaunch completion``: the shell completion script."""

import click

from hpclaunch.cli.main import program


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    Example, in ~/.bashrc: eval "$(hpclaunch completion bash)"
    """
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101
    click.echo(completion(program, {}, "hpclaunch", "_HPCLAUNCH_COMPLETE").source())
