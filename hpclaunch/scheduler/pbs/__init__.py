"""PBS Professional and OpenPBS: qsub, qdel, qrerun; qstat's answers are read in ``pbs_status``.

Tested on outputs recorded from OpenPBS 23.06 (tests/data/pbs).
"""

import re
from collections.abc import Mapping
from typing import Any

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.scheduler import scheduler_interface
from hpclaunch.scheduler.job_header import Resources
from hpclaunch.scheduler.launcher import Mpiexec


def _attach_parse(job: str, answer: CommandResult) -> scheduler_interface.RunningJob:
    """Read state and nodes, each to be reached by ssh; qstat folds long lines with a tab.

    qstat -f (OpenPBS 23.06; man qstat, man pbs_job_attributes). Only tried on a fake PBS.
    """
    if answer.exit_code != 0:
        raise scheduler_interface.unknown_job("qstat", job, answer, "it shows jobs until they have ended")
    text = re.sub(r"\n\t", "", answer.stdout)
    state = re.search(r"^\s*job_state = (\w)", text, re.MULTILINE)
    hosts = re.search(r"^\s*exec_host = (\S+)", text, re.MULTILINE)
    if state is None or state[1] != "R" or hosts is None:
        found = f"in state {state[1]}" if state else "without a state"
        raise BadInputError(f"job {job} is {found}, so it has no ranks", "wait until qstat shows it as R")
    number = re.search(r"^Job Id: (\S+)", text, re.MULTILINE)
    names = [part.partition("/")[0] for part in hosts[1].split("+")]
    return scheduler_interface.RunningJob(id=number[1] if number else job, nodes=tuple(dict.fromkeys(names)))


class PbsScheduler(scheduler_interface.Scheduler, frozen=True, kw_only=True):
    """PBS. An id is what qsub prints, ``NUMBER.SERVER``."""

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return what qsub has in its own way (man qsub; PBS Professional user's guide)."""
        memory = f":mem={want.memory}" if want.memory else ""
        gpus = f":ngpus={want.gpus_per_node}" if want.gpus_per_node else ""
        cpus = want.tasks_per_node * (want.cpus_per_task or 1)
        chunk = f":ncpus={cpus}:mpiprocs={want.tasks_per_node}{gpus}"
        if want.select is not None:
            chunk = f":{want.select.replace('TASKS', str(want.tasks_per_node))}" if want.select else ""
        return {"select": f"{want.nodes}{chunk}{memory}", "dependency": want.dependency}

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the id, which a site's hook may print among other lines.

        With ``-W block=true`` qsub prints it, waits for the job and exits with the job's status (man qsub):
        an id with its server is that of a job, whatever the exit status.
        """
        server = "?" if answer.exit_code == 0 else ""
        for line in reversed(answer.stdout.splitlines()):
            if re.fullmatch(rf"\d+(\[\])?(\.[\w.-]+){server}", line.strip()):
                return line.strip()
        raise RefusedError(f"PBS refused the job: {scheduler_interface.own_words(answer)}")

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job whose qsub was given the script."""
        if answer.exit_code != 0:
            raise RefusedError(f"qstat gives no answer: {scheduler_interface.own_words(answer)}")
        from hpclaunch.scheduler.pbs.pbs_status import text_jobs

        jobs = text_jobs(answer.stdout).items()
        return next((job for job, a in jobs if script in str(a.get("Submit_arguments", ""))), None)


def _accounting_parse(job: str, answer: CommandResult) -> tuple[scheduler_interface.AccountedJob, ...]:
    """Read the attributes; of an array each job is one.

    The server knows ended jobs for as long as the site keeps their history. The figures are those that
    pbs_mom gathers (``resources_used``): memory is that of all processes of the job on all its nodes.
    """
    from hpclaunch.scheduler.pbs.pbs_status import parse_status, text_jobs

    parse_status("text", [job], answer)  # RefusedError where the server gives no answer
    found = {name: values for name, values in text_jobs(answer.stdout).items() if "[]" not in name}
    if not found:
        raise BadInputError.case("accounting: PBS", job=job)
    return tuple(_job(name, values) for name, values in found.items())


def _job(name: str, values: Mapping[str, Any]) -> scheduler_interface.AccountedJob:
    from hpclaunch.json_document import document_of
    from hpclaunch.scheduler.directive_reader import whole_number
    from hpclaunch.scheduler.pbs.pbs_directives import pbs_bytes, pbs_time_s
    from hpclaunch.scheduler.pbs.pbs_status import iso_time, status_of

    status = status_of(values)
    nodes = str(values.get("exec_host", "")).split("+")
    runs = whole_number(values.get("run_count")) or 1
    submitted = iso_time(values.get("qtime")) or iso_time(values.get("ctime"))
    return document_of(
        scheduler_interface.AccountedJob,
        status,
        id=name,
        name=str(values.get("Job_Name", "")),
        submitted=submitted,
        started=iso_time(values.get("stime")),
        elapsed_s=pbs_time_s(str(values.get("resources_used.walltime"))) if runs == 1 else None,
        limit_s=pbs_time_s(str(values.get("Resource_List.walltime"))),
        nodes=whole_number(values.get("Resource_List.nodect")) or len(nodes),
        memory=pbs_bytes(values.get("Resource_List.mem")),
        cpu_s=pbs_time_s(str(values.get("resources_used.cput"))),
        job_memory=pbs_bytes(values.get("resources_used.mem")) or None,
        runs=runs,
    )


SCHEDULER = PbsScheduler(
    **scheduler_interface.scheduler_data(
        "pbs", Mpiexec(start='mpiexec -n {tasks} -machinefile "$PBS_NODEFILE"')
    ),
    attach=scheduler_interface.Attach(
        job_variable="PBS_JOBID", query=lambda job: ("qstat", "-f", job), parse=_attach_parse
    ),
    accounting=scheduler_interface.Accounting(
        query=lambda job: ("qstat", *(("-t",) if "[]" in job else ()), "-x", "-f", job),
        parse=_accounting_parse,
    ),
)
