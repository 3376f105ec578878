"""PBS' accounting of a job: one qstat, which knows ended jobs for as long as the site keeps their history.

Its figures are those that pbs_mom gathers (``resources_used``): memory is that of all processes of
the job on all its nodes together. Tested on outputs recorded from OpenPBS 23.06.
"""

import re
from collections.abc import Mapping
from typing import Any

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.scheduler_interface import AccountedJob, Accounting

_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}


class PbsAccounting(Accounting, frozen=True, kw_only=True):
    """qstat -x -f."""

    def query(self, job: str) -> tuple[str, ...]:
        """Ask for the job, or for all jobs of an array."""
        return ("qstat", *(("-t",) if "[]" in job else ()), "-x", "-f", job)

    def parse(self, job: str, answer: CommandResult) -> tuple[AccountedJob, ...]:
        """Read the attributes; of an array each job is one."""
        from hpclaunch.scheduler.pbs_status import parse_status, text_jobs

        parse_status("text", [job], answer)  # RefusedError where the server gives no answer
        found = {name: values for name, values in text_jobs(answer.stdout).items() if "[]" not in name}
        if not found:
            raise BadInputError(
                f"PBS has no job {job}", "it knows ended jobs for as long as the site keeps their history"
            )
        return tuple(_job(name, values) for name, values in found.items())


def _job(name: str, values: Mapping[str, Any]) -> AccountedJob:
    from hpclaunch.scheduler.pbs_status import iso_time, status_of

    status = status_of(values)
    index = re.match(r"\d+\[(\d+)\]", name)
    nodes = str(values.get("exec_host", "")).split("+")
    runs = _whole(values.get("run_count")) or 1
    submitted = iso_time(values.get("qtime")) or iso_time(values.get("ctime"))
    return AccountedJob(
        id=name,
        index=int(index[1]) if index else None,
        name=str(values.get("Job_Name", "")),
        account=values.get("Account_Name"),
        queue=values.get("queue"),
        state=status.state,
        exit_code=status.exit_code,
        reason=status.reason,
        submitted=submitted,
        started=iso_time(values.get("stime")),
        ended=status.ended,
        elapsed_s=_seconds(values.get("resources_used.walltime")) if runs == 1 else None,
        limit_s=_seconds(values.get("Resource_List.walltime")),
        nodes=_whole(values.get("Resource_List.nodect")) or len(nodes),
        node_list=",".join(dict.fromkeys(node.partition("/")[0] for node in nodes if node)),
        cpus=_whole(values.get("resources_used.ncpus")),
        memory=_bytes(values.get("Resource_List.mem")),
        cpu_s=_seconds(values.get("resources_used.cput")),
        job_memory=_bytes(values.get("resources_used.mem")) or None,
        runs=runs,
    )


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _bytes(value: Any) -> int | None:
    match = re.fullmatch(r"(\d+)([kmgt]?b)", str(value))
    return int(match[1]) * _UNITS[match[2]] if match else None


def _seconds(value: Any) -> int | None:
    match = re.fullmatch(r"(\d+):(\d+):(\d+)", str(value))
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) if match else None
