"""Measurements of a finished job of a study: seconds of a step, its cost, and what makes it comparable."""

import hashlib
import json
import math
import re
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from hpclaunch.api import JobHandle
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.host.host_interface import Host
from hpclaunch.job.record import JobRecord
from hpclaunch.observe.job_timelines import brought, read_timelines, timeline_files
from hpclaunch.package_data import package_constants
from hpclaunch.study.study_file import StudyFile, StudyPoint
from hpclaunch.timeline.job_timeline import combined

_ELAPSED = "elapsed time of the job, start-up included"
LIMIT = package_constants("study/limits.yaml", "measures")


def measured_point(study: StudyFile, point: StudyPoint, handle: JobHandle) -> StudyPoint:
    """Return the point with what its ended job measured, or why it measured nothing."""
    record = handle.record
    point = msgspec.structs.replace(
        point,
        job=record.id,
        nodes=record.nodes,
        ranks=record.tasks,
        cost=_cost(record),
        node_hours=_node_hours(record),
        fingerprint=_fingerprint(record),
    )
    if record.state != "done":
        why = record.reason or f"exit {record.exit_code}"
        return msgspec.structs.replace(point, state="failed", remark=f"job {record.id} {record.state}: {why}")
    result = handle.result()
    seconds, how = _seconds(study, handle, result)
    binding = record.binding
    remark = None if binding is None or binding.ok else f"binding: {binding.finding}"
    if how == _ELAPSED and seconds < LIMIT.short_s:
        remark = remark or f"{seconds:.0f} s of elapsed time are known to the second only"
    balance, communication = pop_factors(result)
    return msgspec.structs.replace(
        point,
        state="measured",
        seconds=seconds,
        measured_by=how,
        binding=None if binding is None else binding.ok,
        remark=remark,
        load_balance=balance,
        communication_efficiency=communication,
    )


def _seconds(study: StudyFile, handle: JobHandle, result: dict[str, Any] | None) -> tuple[float, str]:
    """Return the seconds of a step, or of the same work, and by what: the program's figure, the steps of our
    runner, those of a timeline, or the elapsed time."""
    record = handle.record
    if study.metric:
        figure = read_metric(study.metric, handle.logs().decode(errors="replace"))
        if study.metric_is == "seconds":
            return figure, "the program's seconds"
        return _work(study, record) / figure, "the program's rate"
    if record.bundled and result:
        steps = [epoch["seconds"] / epoch["steps"] for epoch in result["history"] if epoch["steps"]]
        # The first epoch has start-up in it.
        return median(steps[1:] or steps), "steps of the training" + ("" if steps[1:] else ", its only epoch")
    if any(map(record.request.get, ("profile", "timeline"))):
        with handle.connected() as host:
            return timeline_step_s(record, host), "steps of the timeline"
    return known_elapsed_s(record), _ELAPSED


def pop_factors(result: dict[str, Any] | None) -> tuple[float | None, float | None]:
    """Return load balance and communication efficiency of our runner's result; None where it has no times.

    Its times are means over the ranks. The rank that works longest waits for none, so its useful time is the
    mean useful time and the mean wait.
    """
    times = (result or {}).get("seconds")
    if not isinstance(times, dict) or not all(times.get(key) for key in ("training", "compute")):
        return None, None
    useful, waiting = float(times["compute"]), float(times.get("waiting", 0.0))
    longest = min(useful + waiting, float(times["training"]))
    return min(1.0, useful / longest), longest / float(times["training"])


def read_metric(pattern: str, log: str) -> float:
    """Return the median of the numbers that the pattern's group finds, without the first of several.

    Further ones at the start count as warm-up while they are far from the rest: at most half of all.
    """
    numbers = []
    for text in re.findall(pattern, log):
        try:
            number = float(text.replace(",", ""))
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadInputError(f"--metric '{pattern}': '{text}' is not a number")
        numbers.append(number)
    if not numbers or min(numbers) <= 0:
        raise BadInputError(f"--metric '{pattern}': no number above 0 was found in the job's output")
    return median(steady(numbers[1:] or numbers))


def steady(numbers: list[float]) -> list[float]:
    """Return the numbers without those at the start that are warm-up, at least half of them."""
    for start in range(len(numbers) // 2):
        rest = numbers[start + 1 :]
        middle = median(rest)
        usual = max(1.4826 * median(abs(one - middle) for one in rest), 0.01 * middle)
        if len(rest) < 3 or abs(numbers[start] - middle) <= LIMIT.warm * usual:
            return numbers[start:]
    return numbers[len(numbers) // 2 :]


def _work(study: StudyFile, record: JobRecord) -> float:
    """Return the work of a step, in the units of the rate: the batch of all ranks where it is known."""
    batch = study.batch or 1
    return batch * record.tasks if study.kind == "weak" else batch


def known_elapsed_s(record: JobRecord) -> float:
    """Return the seconds of a job; raises BadInputError for less than one, since they are whole numbers."""
    if record.ended is None or record.elapsed_s is None:
        raise BadInputError(f"job {record.id}: its start and end are not known", "use --metric")
    if record.elapsed_s < 1:
        raise BadInputError(f"job {record.id} took less than a second: its elapsed time is not known better")
    return record.elapsed_s


def _cost(record: JobRecord) -> float | None:
    billing, hours = record.plan.get("profile", {}).get("billing"), _node_hours(record)
    return float(hours * billing["per_node_hour"]) if billing and hours is not None else None


def _node_hours(record: JobRecord) -> float | None:
    if record.ended is None or record.elapsed_s is None:
        return None
    return record.nodes * max(record.elapsed_s, 1e-3) / 3600


def _fingerprint(record: JobRecord) -> dict[str, str]:
    """Return what must be alike for two points to be comparable: profile, versions, code, environment."""
    request = {key: value for key, value in record.request.items() if key not in LIMIT.sizes}
    return {
        "profile": record.profile_digest[:12],
        "versions": _digest(record.versions),
        "code": record.git_commit or "",
        "environment": _digest(request),
    }


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def timeline_step_s(record: JobRecord, host: Host) -> float:
    """Return the median seconds of a step but for the first ones. Raises BadInputError: there are none."""
    files = timeline_files(host, record)[: LIMIT.most]
    if not files:
        raise BadInputError(note_text("study: no timeline", record=record))
    with tempfile.TemporaryDirectory(prefix="hpclaunch-timeline-") as folder:
        read = read_timelines(brought(host, record, files, Path(folder)))
    seconds = combined(read, record.tasks).step_ms / 1e3
    if not seconds > 0:
        raise BadInputError(f"job {record.id}: no steps are in its timeline, {files[0].source}")
    return seconds
