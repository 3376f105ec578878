"""LSF: its header and launchers, and its answers as others recorded them (tests/data/lsf)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.job.template_files import script_templates
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.scheduler.lsf import SCHEDULER as LSF
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus
from hpclaunch.site.load_profile import load_site
from tests.in_one_test import in_one_test

ANSWERS = yaml.safe_load((Path(__file__).parents[1] / "data" / "lsf" / "answers.yaml").read_text())
JOB = "261871"


def recorded(name: str) -> CommandResult:
    one = {"exit_code": 0, "stdout": "", "stderr": "", **ANSWERS[name]}
    return CommandResult(exit_code=one["exit_code"], stdout=one["stdout"], stderr=one["stderr"])


def rows(*texts: str) -> CommandResult:
    return CommandResult(exit_code=0, stdout="".join(f"{text}\n" for text in texts), stderr="")


def status(answer: CommandResult) -> JobStatus:
    return LSF.parse_status("reasons", [JOB], answer)[JOB]


@in_one_test(
    "name, state, exit_code, words",
    [
        ("done", "done", 0, None),
        ("done-without-dashes", "done", 0, None),
        ("cancelled", "cancelled", None, None),
        ("cancelled-while-running", "cancelled", 143, None),
        ("pending", "queued", None, "New job is waiting for scheduling: it was not considered yet"),
        ("pending-on-a-dependency", "queued", None, "it waits for another job to end"),
        ("waiting-for-the-daemon", "running", None, None),
    ],
)
def test_recorded_states(name: str, state: JobState, exit_code: int | None, words: str | None) -> None:
    found = status(recorded(name))
    assert (found.state, found.exit_code) == (state, exit_code)
    assert words in (found.reason or "") if words else found.reason is None


@in_one_test(
    "row, state, exit_code, words",
    [
        ("EXIT|3|-|-", "failed", 3, "the script ended with exit status 3"),
        ("EXIT|140|TERM_RUNLIMIT: job killed|-", "failed", 140, "it reached its walltime"),
        ("EXIT|130|TERM_MEMLIMIT: job killed|-", "failed", 130, "more memory than allowed"),
        ("EXIT|1|TERM_RMS: job exited|-", "failed", 1, "TERM_RMS: job exited"),
        ("EXIT|130|TERM_ADMIN: killed by root|-", "cancelled", 130, "killed by root"),
        ("EXIT|-|-|-", "failed", None, "without exit status"),
        ("PSUSP|-|-|-", "queued", None, "bresume"),
        ("PROV|-|-|-", "queued", None, "waking up"),
        ("WAIT|-|-|-", "queued", None, "chunk"),
        ("USUSP|-|-|-", "running", None, "bresume"),
        ("SSUSP|-|-|-", "running", None, "suspended by LSF"),
        ("UNKWN|-|-|-", "running", None, "lost contact"),
        ("ZOMBI|-|-|-", "running", None, "when the host is back"),
        ("PEND|-|-|Dependency condition invalid or never satisfied", "queued", None, "cancel this one"),
        ("PEND|-|-|User has reached the per-user job slot limit", "queued", None, "a limit is reached"),
        ("PEND|-|-|Something | else", "queued", None, "Something | else"),
        ("NEW|-|-|-", "running", None, "LSF calls its state 'NEW'"),
    ],
)
def test_further_documented_states(row: str, state: JobState, exit_code: int | None, words: str) -> None:
    found = status(rows(f"{JOB}|0|{row}"))
    assert (found.state, found.exit_code) == (state, exit_code)
    assert words in (found.reason or "")


@in_one_test("name", ["unknown", "unknown-255", "none-at-all"])
def test_a_forgotten_job_is_unknown_and_no_failure(name: str) -> None:
    assert LSF.parse_status("reasons", [JOB], recorded(name)) == {}


def test_an_lsf_without_reasons_is_queried_for_the_states_alone() -> None:
    with pytest.raises(RefusedError, match="bjobs gives no answer"):
        LSF.parse_status("reasons", [JOB], recorded("no-custom-format"))
    assert LSF.status_sources == ("reasons", "states")
    found = LSF.parse_status("states", [JOB, "7"], rows(f"{JOB}|0|RUN|-", "7|0|EXIT|3"))
    assert {job: one.state for job, one in found.items()} == {JOB: "running", "7": "failed"}


@pytest.mark.parametrize("form", ["{job}[{index}]|{index}|{rest}", "{job}|{index}|{rest}"])
def test_the_jobs_of_an_array(form: str) -> None:
    rest = {1: "DONE|-|-|-", 2: "EXIT|3|-|-", 12: "RUN|-|-|-"}
    texts = [form.format(job=JOB, index=index, rest=text) for index, text in rest.items()]
    found = status(rows(*texts))
    assert {index: job.state for index, job in found.jobs.items()} == {1: "done", 2: "failed", 12: "running"}
    assert found.state == "running"


def test_the_file_of_the_job_tells_it_from_another() -> None:
    found = status(rows(f"{JOB}|0|PEND|-|-|one | two|/home/me/jobs/a/lsf.log"))
    assert (found.reason, found.identity.script) == ("one | two", "/home/me/jobs/a/lsf.log")
    for text in (f"{JOB}|0|PEND|-|-|-|-", f"{JOB}|0|PEND|-|-|-"):
        assert (status(rows(text)).reason, status(rows(text)).identity.script) == (None, None)


def test_rubbish_is_no_answer() -> None:
    for text in ("maintenance until noon", f"{JOB}|0", "|||||"):
        with pytest.raises(RefusedError, match="bjobs gives an answer that cannot be read"):
            LSF.parse_status("reasons", [JOB], rows(text))


def test_the_cluster_has_a_name() -> None:
    text = "IBM Spectrum LSF 10.1.0.15\n\nMy cluster name is summit\nMy master name is batch1\n"
    assert LSF.parse_cluster(CommandResult(exit_code=0, stdout=text, stderr="")) == "summit"
    with pytest.raises(RefusedError, match="lsid does not name its cluster"):
        LSF.parse_cluster(CommandResult(exit_code=0, stdout="", stderr=""))


def test_one_bjobs_for_all_jobs() -> None:
    (words,) = LSF.status_commands("reasons", ["1", "2"])
    assert words[:4] == ("bjobs", "-a", "-noheader", "-o")
    assert words[4].endswith(" delimiter='|'")
    assert words[5:] == ("1", "2")


def test_submitting() -> None:
    assert LSF.parse_submit(recorded("submitted")) == "2329803"
    assert LSF.parse_submit(recorded("submitted-after-waiting")) == "12345678"
    refused = CommandResult(exit_code=255, stdout="", stderr="nosuch: No such queue. Job not submitted.\n")
    for answer in (refused, rows("Job <fuzz> is submitted to default queue"), rows()):
        with pytest.raises(RefusedError, match="LSF refused the job"):
            LSF.parse_submit(answer)


def test_a_lost_job_is_found_by_its_own_file() -> None:
    answer = rows("7|/jobs/a/lsf.log", "8[2]|/jobs/b/lsf.log", "9|-")
    assert LSF.parse_found("/jobs/a/job.sh", answer) == "7"
    assert LSF.parse_found("/jobs/b/job.sh", answer) == "8"
    assert LSF.parse_found("/jobs/c/job.sh", answer) is None
    with pytest.raises(RefusedError, match="bjobs gives no answer"):
        LSF.parse_found("/jobs/a/job.sh", recorded("no-custom-format"))


def test_cancelling() -> None:
    for name in ("killing", "killing-the-finished", "killing-the-unknown"):
        LSF.parse_cancel(recorded(name))
    denied = CommandResult(exit_code=255, stdout="", stderr="Job <11>: Permission denied\n")
    with pytest.raises(RefusedError, match="LSF did not cancel the job: Job <11>: Permission denied"):
        LSF.parse_cancel(denied)


# --- scripts -----------------------------------------------------------------------------------------------


def script(launcher: str = "mpiexec", **asked: Any) -> str:
    asked = {"name": "try", **asked}
    request = JobRequest(site="generic-lsf", command=Command(argv=("./train",)), **asked)
    profile = load_site("generic-lsf")
    profile = replace(profile, scheduler=replace(profile.scheduler, launcher=launcher))
    place = JobPlace()
    return render(make_plan(request, profile, None, place), place, script_templates())


def options(text: str) -> list[str]:
    return re.findall(r"^#BSUB (.*)$", text, re.MULTILINE)


def test_slots_are_ranks_on_whole_nodes_and_cpus_on_shared_ones() -> None:
    whole = script(nodes=2, tasks_per_node=4, cpus_per_task=3)
    assert {"-n 8", '-R "span[ptile=4]"', "-x"} <= set(options(whole))
    assert "machines" not in whole
    shared = script(nodes=2, tasks_per_node=4, cpus_per_task=3, exclusive=False)
    assert {"-n 24", '-R "span[ptile=12]"'} <= set(options(shared))
    assert "-x" not in options(shared)
    assert "awk 'NR % 3 == 1'" in shared
    assert 'mpirun -n 8 -machinefile "$LSB_DJOB_HOSTFILE"' in shared


@in_one_test("time, limit", [("30m", "0:30"), ("90s", "0:02"), ("2-00:00:00", "48:00"), ("01:05:00", "1:05")])
def test_the_walltime_is_in_minutes_rounded_up(time: str, limit: str) -> None:
    assert f"-W {limit}" in options(script(time=time))


def test_jsrun_on_whole_nodes() -> None:
    text = script("jsrun", nodes=2, tasks_per_node=6, gpus_per_task=1)
    assert "-nnodes 2" in options(text)
    assert not [option for option in options(text) if option.split()[0] in ("-n", "-R", "-gpu", "-x")]
    sets = "--nrs=2 --rs_per_host=1 --tasks_per_rs=6 -c ALL_CPUS -g ALL_GPUS -d packed --bind=none"
    assert f"\njsrun {sets} \\\n" in text
    assert 'RANK="${JSM_NAMESPACE_RANK:?jsrun gave no rank}"' in text


@pytest.mark.parametrize(
    ("launcher", "first", "names"),
    [("mpiexec", "launch1", ["launch1", "a1", "a2"]), ("jsrun", "a1", ["a1", "a2"])],
)
def test_the_launch_node_runs_no_rank_of_jsrun(
    launcher: str, first: str, names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("launch1\na1\na1\na2\na2\n")
    chosen = LSF.launcher(launcher)
    assert chosen is not None
    start = [line.text for line in (*LSF.start_lines, *chosen.environment(None, ()))]
    program = "\n".join(["set -eo pipefail", *start, LSF.first_node, 'echo "$MASTER_ADDR"', LSF.node_names])
    answer = subprocess.run(
        ["bash", "-c", program],
        env={"PATH": "/usr/bin:/bin", "LSB_DJOB_HOSTFILE": str(tmp_path / "hosts")},
        capture_output=True,
        text=True,
    )
    assert answer.stdout.splitlines() == [first, *names], answer.stderr


def test_a_job_of_one_slot_may_have_no_file_of_hosts(tmp_path: Path) -> None:
    program = f"{LSF.start_lines[0].text}\n{LSF.node_names}"
    variables = {"PATH": "/usr/bin:/bin", "HPCLAUNCH_JOB_FOLDER": str(tmp_path), "LSB_HOSTS": "n7"}
    answer = subprocess.run(["bash", "-c", program], env=variables, capture_output=True, text=True)
    assert answer.stdout == "n7\n"


@in_one_test(
    "asked, words",
    [
        ({"array": "0-3"}, "the indices of LSF begin at 1"),
        ({"max_restarts": 1}, "not supported on LSF"),
        ({"exclude": ("n1",)}, "LSF leaves nodes out by requirements that hpclaunch does not write"),
        ({"name": "a[1]"}, "cannot stand in a batch script"),
        ({"directives": ("-W 2:00",)}, "use --time"),
        ({"directives": ("-n 4",)}, "use --nodes"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        script(**asked)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_options_of_several_letters_are_not_those_of_one() -> None:
    directives = ("-We 10", "-wt 5", "-Ne", "-outdir /x", '-R "select[mem>100]"')
    assert set(options(script(directives=directives))) >= set(directives)


def test_a_path_that_a_directive_cannot_carry_is_refused() -> None:
    place = JobPlace(folder="/home/a b/jobs/1", job_id="1")
    request = JobRequest(site="generic-lsf", command=Command(argv=("x",)))
    with pytest.raises(BadInputError, match="cannot stand in a #BSUB line"):
        make_plan(request, load_site("generic-lsf"), None, place)
