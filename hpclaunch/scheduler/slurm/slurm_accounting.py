"""Slurm's accounting of a job: one sacct command, also for jobs that hpclaunch did not submit.

Tried with 22.05.8. Which of the figures a site gathers is its own choice (JobAcctGatherType,
AcctGatherEnergyType in slurm.conf); what it does not gather is empty or 0, and None here.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.scheduler_interface import AccountedJob, iso_time, own_words

QUERIES: dict[str, Any] = json.loads(text_beside(__file__, "queries.json"))
_COLUMNS: list[str] = QUERIES["accounting"]
"""JobName is the last one: it may hold the character between the columns."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_NO_NAME_YET = "allocation"
"""The name that sacct 22.05.8 prints in the first seconds of a job, until slurmctld has sent it."""
LOOK = "hpclaunch-look"
"""The name of a step that looks at the ranks."""
_UNKNOWN_UINT64 = 1 << 60
"""Slurm prints 2^64-2 for an energy that it does not know."""


def accounting_query(job: str) -> tuple[str, ...]:
    """Ask for the job and its steps, each time that it ran."""
    from hpclaunch.scheduler.slurm.slurm_status import cluster_of, number_of

    words = ("sacct", *cluster_of(job), "--noheader", "--parsable2", "--duplicates", "--noconvert")
    return (*words, f"--format={','.join(_COLUMNS)}", "--jobs", number_of(job))


def parse_accounting(job: str, answer: CommandResult) -> tuple[AccountedJob, ...]:
    """Read the rows; of an array each job is one."""
    if answer.exit_code != 0:
        raise RefusedError(f"sacct gives no answer: {own_words(answer)}")
    groups: dict[str, list[dict[str, str]]] = {}
    for line in answer.stdout.splitlines():
        cells = line.split("|", len(_COLUMNS) - 1)
        if len(cells) == len(_COLUMNS):
            row = dict(zip(_COLUMNS, cells, strict=True))
            groups.setdefault(row["JobID"].partition(".")[0], []).append(row)
    found = [
        _job(number, rows) for number, rows in groups.items() if any(row["JobID"] == number for row in rows)
    ]
    if not found:
        raise BadInputError.case("accounting: Slurm", job=job)
    return tuple(found)


def _job(number: str, rows: Sequence[Mapping[str, str]]) -> AccountedJob:
    from hpclaunch.json_document import document_of
    from hpclaunch.scheduler.slurm.slurm_status import job_status

    own = [row for row in rows if row["JobID"] == number]
    last = own[-1]
    status = job_status(last["State"], last["ExitCode"], last["Start"], last["End"])
    # A step has no figures before its end; those that have ended while ranks run are looks at these.
    full = rows if status.ended else ()
    energies = [energy for row in full if (energy := _energy(row["ConsumedEnergyRaw"]))]
    memory = re.search(r"(?:^|,)mem=([^,]+)", last["AllocTRES"])
    return document_of(
        AccountedJob,
        status,
        id=number,
        name="" if last["JobName"] == _NO_NAME_YET else last["JobName"],
        submitted=iso_time(own[0]["Submit"]),
        queued_s=_sum(_waited(row) for row in own),
        elapsed_s=_sum(_whole(row["ElapsedRaw"]) for row in own),
        limit_s=None if (minutes := _whole(last["TimelimitRaw"])) is None else 60 * minutes,
        nodes=_whole(last["NNodes"]) or 1,
        memory=_bytes(memory[1]) if memory else None,
        cpu_s=sum(filter(None, (_seconds(row["TotalCPU"]) for row in full if row in own))) or None,
        peak_memory=_largest(row for row in full if row["JobID"] != number and row["JobName"] != LOOK),
        energy_j=max(energies, default=None),
        runs=len(own),
    )


def _largest(steps: Iterable[Mapping[str, str]]) -> int | None:
    """Return the bytes of the largest task; .batch and .extern are no ranks (man sacct, Job ID)."""
    of_ranks = [row for row in steps if not row["JobID"].endswith((".batch", ".extern"))]
    return max((_bytes(row["MaxRSS"]) or 0 for row in of_ranks), default=0) or None


def _waited(row: Mapping[str, str]) -> int | None:
    submitted, started = _whole(row["Submit"]), _whole(row["Start"])
    return None if submitted is None or started is None else max(0, started - submitted)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _bytes(text: str) -> int | None:
    """Read ``1234K``, ``16G``; a bare number of MaxRSS is bytes (man sacct, --noconvert)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text.strip())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


def _energy(text: str) -> float | None:
    joule = _whole(text)
    return None if joule is None or joule == 0 or joule >= _UNKNOWN_UINT64 else float(joule)


def _seconds(text: str) -> float | None:
    """Read ``[DD-[HH:]]MM:SS[.mmm]``."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
