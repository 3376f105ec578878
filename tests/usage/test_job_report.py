"""The report: its figures from samples, records and accounting whose figures are known; text and page."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hpclaunch.cli.main import program
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.job.record import ArrayJob, BindingVerdict, Failure, JobRecord, RankReport, judge
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.schema import Billing
from hpclaunch.usage.gather_report import JobFacts, _own
from hpclaunch.usage.job_report import job_report
from tests.testbed.kit import new_record
from tests.timeline.made_timelines import Training, always, runner
from tests.usage.made_samples import EVERY, START, node_file

ACCOUNTING = get_scheduler("slurm").accounting
GPU = "0000:07:00.0"


def at(seconds: int) -> str:
    return dt.datetime.fromtimestamp(START + seconds, dt.timezone.utc).isoformat()


def rank_report(rank: int, host: str, bus: str = "") -> RankReport:
    return RankReport(
        rank=rank, host=host, local_rank=rank % 2, cpus="0-3", planned="0-3", bus=bus, verdict="ok"
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Store()


def ended_job(store: Store, tmp_path: Path, **changes: Any) -> JobRecord:
    """A job of two nodes and four ranks that ran 330 s after 600 s in the queue, its ranks from 20 s on."""
    reports = tuple(rank_report(rank, f"n{rank // 2 + 1}", GPU if rank == 0 else "") for rank in range(4))
    ok, finding = judge(reports, 4)
    billing = {"unit": "node-hours", "per_node_hour": 2.0}
    settled: dict[str, Any] = {
        "nodes": 2,
        "tasks": 4,
        "state": "done",
        "exit_code": 0,
        "machine": None,
        "created": at(-620),
        "started": at(-20),
        "ended": at(310),
        "request": {"exclusive": True, "no_sample": False},
        "plan": {"walltime_s": 1800, "profile": {"billing": billing}},
        "binding": BindingVerdict(ok=ok, finding=finding, ranks=reports),
        **changes,
    }
    record = replace(new_record(store, "local", tmp_path), **settled)
    store.save(record)
    return record


def write_samples(folder: Path | str, **files: str) -> None:
    samples = Path(folder) / "samples"
    samples.mkdir(parents=True)
    for name, text in files.items():
        (samples / name).write_text(text)


def report(*words: str | Path) -> Result:
    return CliRunner().invoke(program, ["report", *map(str, words)], catch_exceptions=False)


def document(*words: str | Path) -> Any:
    answer = report(*words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def test_the_figures_of_an_ended_job(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1), gpu=GPU, watts=900), n2=node_file((2, 3), busy=1.0))
    found = document("last")
    times = found["times"]
    assert (times["queue_s"], times["start_up_s"], times["run_s"], times["wall_s"]) == (600, 20, 310, 330)
    assert (times["restarts"], times["lost"], len(times["runs"])) == (0, None, 1)
    first, second = found["by_node"]
    assert (first["node"], first["looks"], first["memory_peak"], first["memory_of"]) == (
        "n1",
        11,
        4 << 30,  # of its ranks; the node had 10 GiB in use
        64 << 30,
    )
    assert first["cpus_busy"] == pytest.approx(4.0, rel=0.01)
    assert second["cpus_busy"] == pytest.approx(2.0, rel=0.01)
    (gpu,) = first["gpus"]
    assert (gpu["name"], gpu["ranks"], gpu["source"]) == (GPU, [0], "nvidia-smi")
    assert (gpu["busy"], gpu["memory_peak"], gpu["power_w"]) == (45.5, 40000 << 20, 400.0)
    assert [(figure["source"], figure["joules"]) for figure in first["energy"]] == [
        ("counter", 900 * 300),
        ("estimate", 400 * 300),
    ]
    assert all("1 of 2 nodes only" in figure["how"] for figure in found["energy"])
    ranks = found["by_rank"]
    assert [(rank["rank"], rank["node"], rank["cpus_busy"]) for rank in ranks] == [
        *((0, "n1", 2.0), (1, "n1", 2.0)),
        *((2, "n2", 1.0), (3, "n2", 1.0)),
    ]
    assert (ranks[0]["memory_peak"], ranks[0]["cpus_bound"], ranks[0]["gpu_busy"]) == (2 << 30, 4, 45.5)
    assert found["cost"]["amount"] == pytest.approx(2 * 330 / 3600 * 2)
    assert "2 nodes x 00:05:30 x 2 node-hours per node and hour" in found["cost"]["text"]
    following = {one["what"]: one["ask"] for one in found["next"]}
    assert following == {"time": "00:10:00", "memory": "5G", "cores": "2", "nodes": None}
    assert found["over_time"][5] == {
        **{"second": 150, "cpus_busy": 3.0, "memory": 10 << 30, "gpu_busy": 100.0, "power_w": 900.0}
    }
    assert found["binding"]["ok"]
    assert any("steps per second: no timeline" in text for text in found["unknown"])


def test_a_peak_of_the_jobs_cgroup_is_exact_and_stands_against_its_limit(
    store: Store, tmp_path: Path
) -> None:
    record = ended_job(store, tmp_path)
    text = node_file((0, 1)).replace("cgroup=none", "cgroup=job")
    text = re.sub(r"( mem=10485760)", rf"\1 now={4 << 30} peak={6 << 30} limit={8 << 30} used=5", text)
    write_samples(record.folder, n1=text, n2=text.replace(f"peak={6 << 30}", f"peak={7 << 30}"))
    found = document("last")
    node, _ = found["by_node"]
    assert any("most on n2: 7" in one["text"] for one in found["next"])
    assert (node["memory_peak"], node["memory_source"], node["memory_of"]) == (6 << 30, "cgroup", 8 << 30)


def test_a_job_that_came_back_after_a_checkpoint_lost_nothing(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path, nodes=1, restarts=1, ended=at(1300))
    write_samples(record.folder, n1=node_file((0, 1)) + node_file((0, 1), start=START + 1000, run=1))
    times = document("last")["times"]
    assert [(run["start"] - START, run["end"] - START) for run in times["runs"]] == [(0, 300), (1000, 1300)]
    assert (times["restarts"], times["between_runs_s"]) == (1, 700)
    assert times["lost"].startswith("none (before each restart the program has said")
    assert (times["lost_steps"], times["lost_s"]) == (0, 0)
    assert times["run_s"] == 600
    (time,) = (one for one in document("last")["next"] if one["what"] == "time")
    assert time["ask"] == "00:15:00"
    assert "it ran 00:10:00 in 2 runs of 00:30:00 each; in one run; x 1.25" in time["text"]
    store.save(replace(store.load(record.id), restarts=0))
    times = document("last")["times"]
    assert times["lost"].startswith("not known, at most the 00:05:00 of the runs before")
    assert (times["lost_steps"], times["lost_s"]) == (None, None)
    lines = [
        '{"from_step": 120, "steps": 14, "seconds": 3.25}',
        '{"from_step": 150, "steps": 1, "seconds": 2}',
    ]
    Path(record.folder, "lost_work").write_text("\n".join([*lines, '{"from_step": 1', ""]))
    times = document("last")["times"]
    assert (times["restarts"], times["lost_steps"], times["lost_s"]) == (2, 15, 5.25)
    assert re.search(r"restarts +2, .*; work lost: 15 steps, 5\.2 s of training", report("last").stdout)


def test_arrays_have_all_their_jobs(store: Store, tmp_path: Path) -> None:
    jobs = {
        3: ArrayJob(state="done", exit_code=0, started=at(0), ended=at(300)),
        4: ArrayJob(state="done", exit_code=0, started=at(400), ended=at(1000)),
        5: ArrayJob(state="cancelled"),
    }
    record = ended_job(store, tmp_path, array=jobs, nodes=1, tasks=2)
    write_samples(f"{record.folder}/3", n1=node_file((0, 1)))
    write_samples(f"{record.folder}/4", n1=node_file((0, 1), start=START + 410, busy=3.0))
    found = document("last")
    assert (found["jobs"], found["times"]["wall_s"], found["times"]["restarts"]) == (3, 600, 0)
    assert [(node["index"], node["node"]) for node in found["by_node"]] == [(3, "n1"), (4, "n1")]
    assert [rank["index"] for rank in found["by_rank"]] == [3, 3, 4, 4]
    assert found["cost"]["amount"] == pytest.approx(900 / 3600 * 2)
    assert next(one["ask"] for one in found["next"] if one["what"] == "cores") == "3"


@pytest.mark.parametrize(
    ("changes", "what", "said"),
    [
        ({"state": "failed", "exit_code": 1}, "time", "so how long it needs is not known"),
        (
            {"state": "failed", "ended": at(1790)},
            "time",
            "ended at its limit: how long it would need is not known",
        ),
        (
            {"state": "failed", "failure": Failure(cause="out of host memory")},
            "memory",
            "more than it had, how much more is not known",
        ),
    ],
)
def test_what_is_not_known_for_the_next_time_is_not_guessed(
    changes: dict[str, Any], what: str, said: str, store: Store, tmp_path: Path
) -> None:
    record = ended_job(store, tmp_path, **changes)
    write_samples(record.folder, n1=node_file((0, 1)))
    (one,) = (one for one in document("last")["next"] if one["what"] == what)
    assert one["ask"] is None
    assert said in one["text"]


def test_a_job_that_was_looked_at_once_gets_no_advice_for_what_it_used(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1), looks=1))
    found = document("last")
    assert [rank["memory_peak"] for rank in found["by_rank"]] == [None, None]
    following = {one["what"]: one for one in found["next"]}
    assert "looked at once only" in following["memory"]["text"]
    assert [following[what]["ask"] for what in ("memory", "cores", "nodes")] == [None] * 3
    assert any("the job was too short for two looks" in text for text in found["unknown"])


def test_a_rank_whose_memory_grows_to_the_end_is_named(store: Store, tmp_path: Path) -> None:
    """What a rank loads at first, a peak at the end and small steps are none; few looks do not tell."""

    def grows(looks: int, mib: Callable[[int], float]) -> list[str]:
        record = ended_job(store, tmp_path)
        lines = node_file((0, 1), looks=looks).splitlines()
        for number, line in enumerate(lines):
            words = line.split()
            if words[0] == "proc" and words[2] == "1":
                look = (int(words[1]) - START) // EVERY
                lines[number] = " ".join([*words[:4], str(round(1024 * mib(look))), "0", "3"])
        write_samples(record.folder, n1="\n".join(lines))
        return [text for text in document(record.id)["unknown"] if "memory" in text]

    (said,) = grows(20, lambda look: 100.0 + 50 * look)
    assert "the memory of rank 1 still grew in the second half of its time, from 650 MiB to 1,000 MiB" in said
    freed = grows(30, lambda look: 100.0 + 50 * look if look < 27 else 100.0)
    assert "from 825 MiB to 1.29 GiB" in freed[0], "at the end it gave its memory back"
    assert grows(30, lambda look: 100.0 + 50 * look if look < 22 else 100.0) == []
    assert grows(20, lambda look: min(100.0 + 100 * look, 1000.0)) == []
    assert grows(20, lambda look: 5000.0 if look == 19 else 500.0) == []
    assert grows(20, lambda look: 500.0 + 3 * look) == []
    assert grows(16, lambda look: 100.0 + 50 * look) == []


def test_a_node_that_only_others_kept_busy_did_nothing_for_the_job(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path)
    text = node_file((0, 1), busy=0.0)
    others = "\n".join(
        line.replace("cpu=0/", f"cpu={7 * 3000 * number}/") if line.startswith("node ") else line
        for number, line in enumerate(text.splitlines())
    )
    write_samples(record.folder, n1=others)
    (nodes,) = (one for one in document("last")["next"] if one["what"] == "nodes")
    assert "did nothing" in nodes["text"]


def test_a_node_that_others_keep_busy_is_named(store: Store, tmp_path: Path) -> None:
    """More than half a CPU and a tenth of the node's, beyond those of its ranks; without ranks none."""

    def said(others: float, cpus: int = 8, ranks: bool = True) -> list[str]:
        record = ended_job(store, tmp_path)
        text = node_file((0, 1), cpus=cpus)

        def busier(match: re.Match[str]) -> str:
            return f" cpu={int(match[1]) + int(int(match[2]) * others / cpus)}/"

        lines = re.sub(r" cpu=(\d+)/(?=(\d+))", busier, text).splitlines()
        kept = [line for line in lines if ranks or not line.startswith("proc ")]
        write_samples(record.folder, n1=node_file((2, 3)), n2="\n".join(kept))
        return [text for text in document(record.id)["unknown"] if "not of its ranks" in text]

    (found,) = said(2.0)
    assert "processes that are not of its ranks kept 2.0 of 8 CPUs of n2 busy" in found
    assert said(0.0) == said(0.7) == []
    assert said(5.0, cpus=64) == []
    assert len(said(8.0, cpus=64)) == 1
    assert said(2.0, ranks=False) == []


def test_nodes_that_did_nothing_are_named(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1)), n2=node_file((2, 3), busy=0.0))
    (nodes,) = (one for one in document("last")["next"] if one["what"] == "nodes")
    assert (nodes["ask"], nodes["option"]) == ("1", "--nodes 1")
    assert "n2; 1 worked" in nodes["text"]


def test_speed_comes_from_the_result_of_the_bundled_training(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path, bundled=True)
    history = [{"images_per_s": speed} for speed in (1.0, 100.0, 100.0, 100.0, 100.0, 110.0, 110.0)]
    result = {"steps": 600, "resumed_from_step": 100, "seconds": {"training": 50.0}, "history": history}
    Path(record.folder, "result.json").write_text(json.dumps(result))
    speed = document("last")["speed"]
    assert (speed["steps_per_s"], speed["steps"], speed["trend"], speed["source"]) == (10, 600, 0.1, "result")


def test_speed_of_a_training_that_has_not_ended_comes_from_its_progress(store: Store, tmp_path: Path) -> None:
    record = ended_job(store, tmp_path, bundled=True, state="failed", exit_code=1)
    progress = Path(record.folder, "progress.json")
    progress.write_text('{"label": "epoch 1/9", "share": 0.5, "figures": "", "step": 120, "seconds": 8.0}')
    speed = document("last")["speed"]
    assert (speed["steps_per_s"], speed["steps"], speed["source"]) == (15, 120, "progress")
    progress.write_text('{"label": "epoch 1/9", "share": 0.5, "st')
    assert document("last")["speed"] is None


def test_speed_and_waiting_come_from_a_timeline_in_the_folder(store: Store, tmp_path: Path) -> None:
    """Rank 1 computes 50 ms longer in each step: the others wait for it, and it waits least."""
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1)), n2=node_file((2, 3)))
    training = Training(ranks=4, slow_computing=always(1, 50.0))
    Path(record.folder, "job.sh").touch()
    Path(record.folder, "timeline.json").write_bytes(runner(training))
    found = document("last")
    waits = [rank["waiting_ms"] for rank in found["by_rank"]]
    assert min(waits) == waits[1] < 5
    assert min(waits[0], *waits[2:]) > 40
    assert found["speed"]["source"] == "timeline"
    assert found["speed"]["steps_per_s"] > 0
    assert not any("steps per second" in text for text in found["unknown"])


def test_without_samples_the_report_says_why(store: Store, tmp_path: Path) -> None:
    ended_job(store, tmp_path, request={"no_sample": True})
    answer = report("last")
    assert "there are no samples: the job was submitted with --no-sample" in answer.stdout
    assert re.search(
        r"^memory +- +the job's peak on a node is not known$",
        answer.stdout.replace("  memory", "memory"),
        re.M,
    )


def test_large_samples_are_thinned_and_damaged_ones_counted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpclaunch.usage.gather_report.LIMIT.most_bytes", 20_000)
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1), looks=1001), n2="rubbish\n\0\n" + node_file((2, 3)))
    found = document("last")
    assert 20 < found["by_node"][0]["looks"] < 200
    assert found["by_rank"][0]["cpus_busy"] == 2.0
    assert any("lines of the samples are damaged" in text for text in found["unknown"])


def answered(text: str) -> CommandResult:
    return CommandResult(exit_code=0, stdout=text, stderr="")


SACCT = "\n".join(
    [
        "77|COMPLETED|0:0|1700000000|1700000100|1700000400|300|60|2|billing=16,cpu=16,mem=64G,node=2|01:10.500"
        "|||a|name",
        "77.batch|COMPLETED|0:0|1700000100|1700000100|1700000400|300||1|cpu=8|00:10.500|9123456K|0|batch",
        "77.0|COMPLETED|0:0|1700000100|1700000100|1700000400|300||2|cpu=16|01:00.000|4194304K|900000|x",
    ]
)


def test_a_job_of_which_the_accounting_has_no_name_yet_is_ours(store: Store, tmp_path: Path) -> None:
    assert ACCOUNTING is not None
    record = replace(ended_job(store, tmp_path), name="pi", scheduler_id="77")
    for name in ("pi", "allocation"):
        assert _own(record, ACCOUNTING.parse("77", answered(SACCT.replace("a|name", name))))
    with pytest.raises(BadInputError, match="another job with the number 77"):
        _own(record, ACCOUNTING.parse("77", answered(SACCT)))


def test_the_accounting_of_slurm_is_read() -> None:
    assert ACCOUNTING is not None
    assert "--duplicates" in ACCOUNTING.query("77;alps")
    assert ACCOUNTING.query("77;alps")[-1] == "77"
    (job,) = ACCOUNTING.parse("77", CommandResult(exit_code=0, stdout=SACCT, stderr=""))
    assert (job.name, job.state) == ("a|name", "done")
    assert (job.nodes, job.memory, job.limit_s, job.elapsed_s) == (2, 64 << 30, 3600, 300)
    assert (job.cpu_s, job.peak_memory, job.energy_j) == (70.5, 4 << 30, 900_000.0)
    moments = [
        dt.datetime.fromisoformat(text or "").timestamp() - START for text in (job.submitted, job.started)
    ]
    assert moments == [0, 100]
    again = SACCT.replace("77|COMPLETED", "77|REQUEUED", 1) + "\n" + SACCT
    (job,) = ACCOUNTING.parse("77", CommandResult(exit_code=0, stdout=again, stderr=""))
    assert (job.runs, job.cpu_s, job.elapsed_s, job.queued_s) == (2, 141.0, 600, 200)
    array = SACCT.replace("77", "77_3") + "\n" + SACCT.replace("77", "77_4")
    jobs = ACCOUNTING.parse("77", CommandResult(exit_code=0, stdout=array, stderr=""))
    assert [job.id for job in jobs] == ["77_3", "77_4"]
    with pytest.raises(BadInputError, match="has no job 77"):
        ACCOUNTING.parse("77", CommandResult(exit_code=0, stdout="", stderr=""))
    with pytest.raises(RefusedError, match="accounting storage is disabled"):
        ACCOUNTING.parse(
            "77", CommandResult(exit_code=1, stdout="", stderr="Slurm accounting storage is disabled")
        )


def test_the_accounting_of_pbs_is_read() -> None:
    """Recorded from OpenPBS 23.06, with other figures of use: the recorded job used nothing."""
    accounting = get_scheduler("pbs").accounting
    assert accounting is not None
    recorded = Path(__file__).parents[1] / "data" / "pbs" / "fin-rc0-qstat-x-f" / "stdout"
    text = recorded.read_text().replace("resources_used.mem = 0kb", "resources_used.mem = 3145728kb")
    text = text.replace("resources_used.walltime = 00:00:00", "resources_used.walltime = 00:02:05")
    (job,) = accounting.parse("40", CommandResult(exit_code=0, stdout=text, stderr=""))
    assert (job.name, job.state, job.exit_code, job.nodes) == ("rc0", "done", 0, 1)
    assert (job.job_memory, job.elapsed_s, job.limit_s, job.cpu_s) == (3 << 30, 125, 300, 0)
    assert (job.submitted or "")[14:] == "37:24+00:00"
    facts = JobFacts(record=None, site="polaris", scheduler="pbs", accounted=(job,))
    found = job_report(facts, Billing(unit="node-hours", per_node_hour=1), dt.datetime.now(dt.timezone.utc))
    asked = {one.what: one.ask for one in found.next}
    assert asked["memory"] == "4G"
    assert found.cost is not None
    assert "1 node x 00:02:05" in found.cost.text
    with pytest.raises(BadInputError, match="PBS has no job 41"):
        accounting.parse("41", CommandResult(exit_code=35, stdout="", stderr="qstat: Unknown Job Id 41"))
    with pytest.raises(RefusedError, match="cannot connect to server"):
        accounting.parse("41", CommandResult(exit_code=255, stdout="", stderr="cannot connect to server"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nosuch",), 3, "no job 'nosuch'"),
        (("4711",), 3, "hpclaunch report 4711 --site SITE"),
        (("4711[2].srv",), 3, "hpclaunch report 4711[2].srv --site SITE"),
        (("12", "--site", "generic-lsf"), 3, "what LSF keeps of jobs is not read"),
        (("1 rm", "--site", "generic-slurm"), 3, "is not an id of Slurm"),
        (("12", "--site", "nosite"), 3, "nosite"),
    ],
)
def test_messages(words: tuple[str, ...], code: int, said: str, store: Store) -> None:
    answer = report(*words)
    assert answer.exit_code == code
    assert said in answer.stderr


@pytest.mark.slow
def test_the_page_opens_in_a_browser_and_has_the_figures_of_the_document(
    store: Store, tmp_path: Path
) -> None:
    record = ended_job(store, tmp_path)
    write_samples(record.folder, n1=node_file((0, 1), gpu=GPU, watts=900), n2=node_file((2, 3), watts=700))
    page = tmp_path / "page.html"
    found = document("last", "--html", page)
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(["chromium", *options, page.as_uri()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.findall(r"INFO:CONSOLE.*", done.stderr)
    inside = re.search(r"<script type=\"application/json\" id=\"document\">(.*?)</script>", done.stdout, re.S)
    assert inside is not None
    assert json.loads(inside[1]) == found
    assert done.stdout.count("<polyline") == 4
    shown = re.sub(r"<[^>]+>", " ", done.stdout)
    assert f"{found['energy'][0]['joules'] / 3.6e6:,.4g} kWh" in shown
    assert found["cost"]["text"] in shown
    for one in found["next"]:
        assert one["text"] in shown
    for node in found["by_node"]:
        assert re.search(rf"{node['node']} +{node['looks']} +{node['cpus_busy']:.1f} ", shown)


def test_names_of_users_are_no_html(store: Store, tmp_path: Path) -> None:
    ended_job(store, tmp_path, name="</script><b>x")
    page = tmp_path / "page.html"
    report("last", "--html", page)
    assert "<b>" not in page.read_text()
