"""``hpclaunch report``: what a job used, what it cost, and what to ask for next time."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._jobs import named, up_to_date
from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import show
from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from hpclaunch.usage.report_documents import ReportDocument


@click.command()
@options("report")
def command(job: str, site: str | None, html: Path | None, bundle: Path | None) -> None:
    """Show what JOB used: time in the queue and running, CPU, memory, GPUs, energy, speed, cost; and what to
    ask for next time.
    """
    from hpclaunch.usage.report_text import shown

    document = _foreign(job, site) if site else _of_ours_or_here(job)
    if html:
        from hpclaunch.host.this_machine import LocalHost
        from hpclaunch.usage.report_page import page

        LocalHost().write_file(str(html), page(document).encode("utf-8", "surrogatepass"))
    if bundle:
        from hpclaunch.study.job_bundle import write_bundle

        secrets = write_bundle(named(document.id), document, bundle)
        left_out = f", without {counted(secrets, 'value')} that may be secret" if secrets else ""
        click.echo(f"record of job {document.id} in {bundle}{left_out}", err=True)
    show(document, shown)


def _of_ours(job: str) -> ReportDocument:
    from hpclaunch.usage.gather_report import facts_of_job
    from hpclaunch.usage.job_report import billing_of, job_report

    handle = named(job)
    with handle.connected() as host:
        record = up_to_date(handle)
        facts = facts_of_job(host, record)
    return job_report(facts, billing_of(record), dt.datetime.now(dt.timezone.utc))


def _of_ours_or_here(job: str) -> ReportDocument:
    """Return the report of a job that hpclaunch submitted, else of the scheduler's job of that number."""
    from hpclaunch.job.store import NoSuchJobError

    try:
        return _of_ours(job)
    except NoSuchJobError:
        if not re.match(r"\d+([._[]|$)", job):
            raise
    from hpclaunch.site.detect import detect_here

    site = detect_here().site
    if site is None:
        raise BadInputError.case("report: no job", job=job)
    return _foreign(job, site)


def _foreign(job: str, site: str) -> ReportDocument:
    """Return the report of a job of a scheduler, by its number; where it is one of ours, that one."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.job.store import Store
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.site_scheduler import site_scheduler
    from hpclaunch.usage.gather_report import facts_of_other_job
    from hpclaunch.usage.job_report import job_report

    profile = load_site(site)
    if any(job in (record.id, record.scheduler_id) for record in Store().list()[0] if record.site == site):
        return _of_ours(job)
    facts = facts_of_other_job(LocalHost(), site_scheduler(profile), profile.name, job)
    return job_report(facts, profile.billing, dt.datetime.now(dt.timezone.utc))
