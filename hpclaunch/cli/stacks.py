"""``hpclaunch stacks``: where each rank of a running job stands."""

import click

from hpclaunch.cli._jobs import named, up_to_date
from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import printed
from hpclaunch.errors import RefusedError
from hpclaunch.text_table import printable


@click.command()
@options("stacks")
def command(job: str, index: int | None, watch_s: int | None) -> None:
    """Tell where each rank of the running JOB stands, and which rank the other ranks wait for."""
    from hpclaunch.observe.job_stacks import stacks_document, stacks_left, stacks_of, stacks_over, state_of
    from hpclaunch.remote.roll_call import text_lines

    handle = named(job)
    record, call = up_to_date(handle), None
    with handle.connected() as host:
        if state_of(record, index) == "running":
            try:
                whose = (host, record, index)
                call = stacks_over(*whose, watch_s) if watch_s else stacks_of(*whose)
            except RefusedError:
                record = up_to_date(handle)  # it may have ended meanwhile
                if state_of(record, index) == "running":
                    raise
        call = call or stacks_left(host, record, index)
    if not printed(stacks_document(record.id, call)):
        for line in text_lines(call):
            click.echo(printable(line))
