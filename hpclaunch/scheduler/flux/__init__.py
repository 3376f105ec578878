"""Flux: flux batch, flux jobs, flux cancel, the header of its scripts, and flux run.

Known from the manuals of flux-core and RFC 19 and 36 of Flux, and tried with flux-core 0.88.0 and its own
scheduler (answers in tests/data/flux); not with Fluxion or a system instance. Needs flux-core 0.65 or newer
(flux hostlist, --bank).
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import package_constants, text_beside
from hpclaunch.scheduler import scheduler_interface
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.launcher import Launch, Launcher

_WORD = package_constants("scheduler/forms.json", "flux")

_WORDS = scheduler_interface.state_words("flux")


class FluxRun(Launcher, frozen=True, kw_only=True):
    """flux run, inside the Flux instance that a batch job is (man flux-run, flux-shell-options)."""

    name: str = "flux"
    rank: str = "$FLUX_TASK_RANK"
    local_rank: str = "$FLUX_TASK_LOCAL_ID"
    cpu_bindings: tuple[str, ...] = ("cores",)
    cores_option: str = "-o cpu-affinity=per-task"  # usual is all cores of the job for each rank
    takes_plugin: bool = True
    rank_end: str | None = "flux_rank_end.sh"
    each_node: str = "flux exec --noinput"  # by the job's brokers, which need no free cores (man flux-exec)

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks. One that fails ends the rest; one that is done early does not."""
        sizes = (f"--nodes={launch.nodes}", f"--tasks-per-node={launch.tasks_per_node}", "--exclusive")
        # On its own Flux ends a job 30 s after its first rank is done.
        words = ["flux", "run", *sizes, "-o", "exit-timeout=none", "-o", "exit-on-error"]
        if launch.ranks_bind:
            words += _WORD.unbound
        elif launch.cpu_bind:
            words += launch.cpu_bind.split()
        if launch.mpi_plugin:
            words += ["-o", f"pmi={launch.mpi_plugin}"]
        return (*words, *launch.options)


def _attach_parse(job: str, answer: CommandResult) -> scheduler_interface.RunningJob:
    """Read the one object of flux jobs (man page; tried with 0.88.0)."""
    try:
        found = json.loads(answer.stdout) if answer.stdout.strip() else None
        state, count = (found["status"], int(found["nnodes"])) if found else ("", 0)
    except (ValueError, TypeError, KeyError) as error:
        raise RefusedError(f"flux jobs gives an answer that cannot be read: {error!r}") from None
    if found is None:
        raise scheduler_interface.unknown_job("flux jobs", job, answer, "name one that runs: flux jobs")
    if state != "RUN":
        raise BadInputError(f"job {job} is {state}, so it has no ranks", "name one that runs: flux jobs")
    return scheduler_interface.RunningJob(
        id=re.sub("^ƒ", "f", _one_of(job)), nodes=tuple(f"node {n}" for n in range(count))
    )


class FluxScheduler(scheduler_interface.Scheduler, frozen=True, kw_only=True):
    """Flux. An id is what flux batch prints, with an ``f`` instead of the ``ƒ``, as Flux takes it too."""

    def header(self, want: Resources) -> tuple[Line, ...]:
        """Return the directives (RFC 36), options of flux batch, with a line for each job to wait for."""
        kind = "afterany" if want.after_any else "afterok"
        first = (f"--dependency={kind}:{job}" for text in want.after for job in _ids_of(text))
        return (
            *super().header(want),
            *(Line(text=text, reason="a job that must end first") for text in first),
        )

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return the slots of a job: whole nodes, or ranks."""
        return {
            "slots": want.nodes * want.tasks_per_node,
            "cores": want.cpus_per_task or 1,
            "gpus": -(-(want.gpus_per_node or 0) // (1 if want.exclusive else want.tasks_per_node)),
            "comes_again": want.array or want.warn_s,
        }

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Submit by flux batch; the script's own directives say all else."""
        return _submission(script)

    def finish_command(self, script: str) -> tuple[str, ...]:
        """Find the job, or make sure that there is none."""
        return _submission(script, finish=True)

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the id, which a site's plugin may print among other lines."""
        words = [_plain(line.strip()) for line in answer.stdout.splitlines()] if answer.exit_code == 0 else []
        if jobs := [word for word in words if re.fullmatch(rf"f{_WORD.f58}_\d+", word)]:
            return ".".join(jobs)
        for word in reversed(words):
            if re.fullmatch(f"f{_WORD.f58}", word):
                return word
        raise RefusedError(f"Flux refused the job: {scheduler_interface.own_words(answer)}")

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return one flux jobs for all, in any state."""
        return (("flux", "jobs", "--json", *(job for text in ids for job in _ids_of(text))),)

    def parse_status(
        self, source: str, ids: Sequence[str], answer: CommandResult
    ) -> dict[str, scheduler_interface.JobStatus]:
        """Read the JSON: an object for one job, a list for several; unknown jobs are named on stderr."""
        if answer.exit_code != 0 and not re.search(r"JobID \S+ unknown", answer.stderr):
            raise RefusedError(f"flux jobs gives no answer: {scheduler_interface.own_words(answer)}")
        if answer.exit_code == 0 and answer.stdout.strip() in ("", "{}"):  # it fails where it knows no job
            raise RefusedError("flux jobs gives an answer that cannot be read: there is no job in it")
        try:
            document = json.loads(answer.stdout) if answer.stdout.strip() else {}
            jobs = document.get("jobs", [document] if document else [])
            found = {
                _plain(one["jobid"]): replace(
                    _status(one),
                    identity=scheduler_interface.JobIdentity(
                        submitted=scheduler_interface.iso_time(one.get("t_submit"))
                    ),
                )
                for one in jobs
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RefusedError(f"flux jobs gives an answer that cannot be read: {error!r}") from None
        return {text: status for text in ids if (status := _status_of(text, found))}

    def parse_cluster(self, answer: CommandResult) -> str:
        """Return the nodes of the instance and, in an instance that is a job, the path of its ids."""
        if answer.exit_code != 0 or not (words := answer.stdout.split()):
            raise RefusedError(f"Flux does not name its instance: {scheduler_interface.own_words(answer)}")
        return words[0] + "".join(path for path in words[1:2] if path != "/")

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Signal the job with SIGTERM, then SIGKILL."""
        return ("flux", "cancel", *_ids_of(scheduler_id))

    def parse_cancel(self, answer: CommandResult) -> None:
        """Raise RefusedError unless the job is ended, ending, or unknown by now."""
        words = answer.stderr.splitlines() or [""]
        if answer.exit_code != 0 and not all(re.search("unknown job id|inactive", line) for line in words):
            raise RefusedError(f"Flux did not cancel the job: {scheduler_interface.own_words(answer)}")


def _submission(script: str, *, finish: bool = False) -> tuple[str, ...]:
    """Return the command that submits the script, detached, so that no signal to our session reaches it.

    ``finish``: that finds out about one that was cut off; exit code 75 means that it is not known yet.
    """
    mode = "finish" if finish else "submit"
    text = text_beside(__file__, "submit.sh")
    return ("setsid", "--wait", "bash", "-c", text, "hpclaunch-flux", mode, script)


def _split_id(text: str) -> dict[int, str]:
    """Return index -> id of a job, of the id of an array; nothing for another id."""
    pairs = (part.partition("_") for part in text.split("."))
    return {int(index): job for job, _, index in pairs if index}


def _ids_of(text: str) -> list[str]:
    """Return the ids that Flux knows, of the id of a job or an array."""
    return list(_split_id(text).values()) or [text]


def _one_of(text: str) -> str:
    """Return the id of one job of an array, where its index follows the array's id; else the text."""
    whole, _, index = text.rpartition("_")
    jobs = _split_id(whole)
    return jobs[int(index)] if index.isdigit() and int(index) in jobs else re.sub("_.*", "", text)


def _status_of(
    text: str, found: Mapping[str, scheduler_interface.JobStatus]
) -> scheduler_interface.JobStatus | None:
    """Return the status of a job, or of an array of which some jobs are known."""
    array = _split_id(text)
    jobs = {index: found[job] for index, job in array.items() if job in found}
    return scheduler_interface.array_status(jobs) if jobs else found.get(text)


def _plain(job: str) -> str:
    return f"f{job[1:]}" if job.startswith("ƒ") else job


def _status(job: Mapping[str, Any]) -> scheduler_interface.JobStatus:
    """Return the status of a job of ``flux jobs --json``, which leaves out what is empty."""
    word, started = str(job["status"]), scheduler_interface.iso_time(job.get("t_run"))
    code = _exit_code(job.get("returncode"), started)
    return _WORDS.status(
        word,
        waits=_pending_sentence(word, job),
        fails=_end_sentence(word, job, code, started),
        code=code,
        started=started,
        ended=scheduler_interface.iso_time(job.get("t_inactive")),
    )


def _exit_code(code: Any, started: str | None) -> int | None:
    """Return the exit code, 128+N for signal N; None for a job that never ran: what Flux gives is made up."""
    if not isinstance(code, int) or started is None or code == _WORD.cancelled_before_run:
        return None
    return (code if code > 0 else 128 - code) or None


def _end_sentence(word: str, job: Mapping[str, Any], code: int | None, started: str | None) -> str | None:
    exception = job.get("exception") or {}
    note = ": ".join(str(exception[key]) for key in ("type", "note") if exception.get(key))
    if word == "TIMEOUT":
        return "it reached its walltime: request more (--time), or save checkpoints and continue"
    if word != "FAILED":
        return str(exception.get("note") or "") or None
    if note and exception.get("type") != "exec":
        return note if started else f"{note}: it ended without having run"
    return f"the script ended with exit status {code}" if code else note or "it ended without exit status"


def _pending_sentence(word: str, job: Mapping[str, Any]) -> str | None:
    if word == "DEPEND":
        return f"it waits for another job to end ({', '.join(map(str, job.get('dependencies', ())))})"
    if job.get("urgency") == 0:
        return "it is held: flux job urgency ID default releases it"
    reason = (job.get("annotations") or {}).get("sched", {}).get("reason_pending")
    return str(reason) if reason else None


SCHEDULER = FluxScheduler(
    **scheduler_interface.scheduler_data("flux", FluxRun()),
    # By the job's shells, outside of what its ranks have. An instance of many users takes flux exec --jobid
    # from 0.84 on (its release notes; not tried).
    attach=scheduler_interface.Attach(
        job_variable="FLUX_ENCLOSING_ID",
        query=lambda job: ("flux", "jobs", "--json", _one_of(job)),
        parse=_attach_parse,
        words=lambda job: ("flux", "exec", "--noinput", f"--jobid={job.id}"),
    ),
)
