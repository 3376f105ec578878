"""``hpclaunch logs``: the output of a job."""

from __future__ import annotations

import os
import sys

import click

from hpclaunch.cli._jobs import complete_job
from hpclaunch.cli._terminal_text import for_reader


@click.command()
@click.argument("job", shell_complete=complete_job, default="last")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the job ends.")
@click.option("--index", type=int, help="Print only the output of this index of a job array.")
def command(job: str, follow: bool, index: int | None) -> None:
    """Print the output of JOB: its id or the start of it, its scheduler's id, or last (the default).

    Example: hpclaunch logs -f last
    """
    from hpclaunch.cli._progress_bar import PROGRESS_FILE, JobOutput
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.array_status import job_of_array
    from hpclaunch.job.follow_job import read_log, wait_job
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.registry import get_scheduler

    store = Store()
    record = store.find(job)
    if index is not None:
        if follow:
            raise click.UsageError("--index and --follow exclude each other")
        record = job_of_array(record, index)
    try:
        with open_host(record.host) as host:
            if follow:
                progress = f"{record.folder}/{PROGRESS_FILE}"
                output = JobOutput(sys.stdout.buffer, lambda: host.read_file(progress))
                try:
                    scheduler = get_scheduler(record.scheduler)
                    wait_job(store, host, scheduler, record, output.forward, on_poll=output.poll)
                finally:
                    output.clear()
            else:
                shown = for_reader(sys.stdout.buffer)
                read_log(host, record, lambda data: _print(shown(data)))
    except BrokenPipeError:
        # The reader (head, less) left; Python must not try to flush the remaining output at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
