"""``hpclaunch submit`` on a real Slurm: real ranks over PMIx, LUMI-G's script on emulated LUMI-G nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.package_data import resource_dir
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm
from tests.testbed.kit import record_of

pytestmark = pytest.mark.slurm
MODULEFILES = Path(__file__).parent.parent / "data" / "modulefiles"
TRAIN = ("mnist", "--", "--dataset", "synthetic", "--epochs", "1")


@pytest.fixture
def on_lumig(lumig: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """The emulated LUMI-G, with a module system that knows the modules which the site's script loads."""
    monkeypatch.setenv("SLURM_CONF", str(lumig.conf))
    monkeypatch.setenv("BASH_ENV", "/usr/share/modules/init/bash")
    monkeypatch.setenv("MODULEPATH", str(MODULEFILES))
    monkeypatch.setenv("HPCLAUNCH_TEST_PYTHON_FOLDER", str(Path(sys.executable).parent))
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")  # eight ranks share each core here
    return lumig


def test_two_nodes_train_together(on_slurm: Slurm) -> None:
    answer = hpclaunch(
        *("submit", "--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2"),
        *("--python", sys.executable, "--wait", "--json", *TRAIN),
    )
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert (document["state"], document["exit_code"]) == ("done", 0)
    assert document["result"]["ranks"] == 4
    assert sorted(set(document["result"]["hosts"])) == ["n1", "n2"]
    assert len(set(document["result"]["parameters_sha256"])) == 1
    assert "srun --mpi=pmix: fits the MPI of" in answer.stderr


def test_slurm_takes_memory_excluded_nodes_and_a_time_of_start(on_slurm: Slurm) -> None:
    """A time that is over does not hold the job; one that is to come does."""
    words = ("submit", "--site", "generic-slurm", "--mem", "100M", "--exclude", "n[1,3]", "--json")
    ran = hpclaunch(
        *words, "--begin", "2020-01-31T18:00", "--wait", "--", "bash", "-c", "echo node $SLURMD_NODENAME"
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["state"] == "done"
    held = hpclaunch(*words, "--begin", "2099-12-31T18:00", "--directive", "--comment=x", "--", "true")
    assert held.returncode == 0, held.stderr
    job = json.loads(held.stdout)
    shown = on_slurm.run("scontrol", "show", "job", job["scheduler_id"]).stdout
    for text in ("MinMemoryNode=100M", "ExcNodeList=n[1,3]", "EligibleTime=2099-12-31T18:00:00", "Comment=x"):
        assert text in shown
    assert hpclaunch("cancel", job["id"]).returncode == 0
    again = hpclaunch("resubmit", job["id"], "--exclude", "n4", "--dry-run").stdout
    assert "#SBATCH --exclude=n[1,3],n4 " in again
    assert "--begin" not in again


HOSTILE = [
    "it's",
    'a "b" $(id) `id` $HOME',
    "line\nbreak",
    "\u00fc \u65e5\u672c \U0001f600",
    "--json",
    "",
    "# %x \\ *",
]
SAY = (
    "import json, os, sys; "
    "print('GOT', json.dumps([os.getcwd(), os.environ['SLURM_JOB_NAME'], os.environ['TEXT'], sys.argv[1:]]))"
)


def test_names_paths_and_arguments_arrive_exactly_as_given(on_slurm: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "$(id)"\n\u00fc'
    folder.mkdir()
    name = 'it\'s # a hetjob "$(id)" %j \u202e \u65e5\u672c \U0001f600'
    text = "$(id) `id` ${x:=$(id)}${x@P}\n#SBATCH --nodes=4\n\u202e 'a' \"b\" \\ \t"
    (tmp_path / "job.yaml").write_text(json.dumps({"env": {"TEXT": text}, "account": "a.b+c@d/e,f:1"}))
    words = ("submit", "--site", "generic-slurm", "--mpi", "none", "--name", name, "--wait", "--json")
    more = ("--file", str(tmp_path / "job.yaml"), "--directive", '--comment="it\'s mine #1"', "--")
    answer = hpclaunch(*words, *more, sys.executable, "-c", SAY, *HOSTILE, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    (line,) = (line for line in answer.stderr.splitlines() if line.startswith("GOT "))
    assert json.loads(line.partition(" ")[2]) == [str(folder), name, text, HOSTILE]
    record = record_of(json.loads(answer.stdout)["id"])
    assert (record["name"], record["workdir"]) == (name, str(folder))
    assert record["command"][3:] == HOSTILE
    shown = on_slurm.run("squeue", "-h", "-t", "all", "-j", record["scheduler_id"], "-o", "%j").stdout
    assert shown == f"{name}\n"
    shown = on_slurm.run("squeue", "-h", "-t", "all", "-j", record["scheduler_id"], "-o", "%a|%k|%D").stdout
    assert shown == "a.b+c@d/e,f:1|it's mine #1|1\n"


def test_ranks_that_do_not_find_each_other_fail_with_the_reason(on_slurm: Slurm) -> None:
    answer = hpclaunch(
        *("submit", "--site", "generic-slurm", "--tasks", "2", "--tasks-per-node", "2", "--mpi", "none"),
        *("--python", sys.executable, "--wait", "--json", *TRAIN),
    )
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["state"] == "failed"
    assert "the job starts 2 tasks, but this MPI sees 1 rank" in answer.stderr


def test_a_wrong_partition_is_refused_in_slurms_words(on_slurm: Slurm) -> None:
    answer = hpclaunch("submit", "--site", "generic-slurm", "--partition", "nosuch", "--", "true")
    assert answer.returncode == 4
    assert "nosuch" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_plugin_that_srun_does_not_have_is_refused(on_slurm: Slurm) -> None:
    answer = hpclaunch("submit", "--site", "generic-slurm", "--mpi", "bogus", "--", "true")
    assert answer.returncode == 3
    assert "--mpi bogus: srun on this machine does not offer it" in answer.stderr
    assert {"none", "pmi2", "pmix"} <= set(answer.stderr.rpartition(" has ")[2].strip().split(", "))


def test_lumi_gs_script_runs_on_lumi_g_nodes_with_the_masks_that_slurm_accepts(
    on_lumig: Slurm, tmp_path: Path
) -> None:
    """Each task leaves its process id and the CPU list that the testbed recorded for it."""
    show = f'echo "GOT $SLURM_LOCALID $ROCR_VISIBLE_DEVICES $(cat {on_lumig.lab}/cpus/$PPID)"'
    answer = hpclaunch(
        *("submit", "--site", "lumi-g", "--account", "project_465000001", "--nodes", "2", "--wait", "--json"),
        *("--mpi", "pmix", "--", "bash", "-c", show),
    )
    assert answer.returncode == 0, answer.stderr
    got = [line.split()[1:] for line in answer.stderr.splitlines() if line.startswith("GOT")]
    assert len(got) == 16
    documented = ["49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47"]
    for local_rank, visible, *cpus in got:
        assert visible.split(",")[int(local_rank)] == local_rank
        assert {int(cpu) for cpu in cpus} == parse_cpu_list(documented[int(local_rank)])


@pytest.mark.parametrize(
    "gpus", [("--gpus-per-node=8",), ("--gpus-per-task=1", "-n16", "--hint=nomultithread"), ("--gpus=16",)]
)
def test_lumi_gs_masks_hold_inside_an_allocation(on_lumig: Slurm, gpus: tuple[str, ...]) -> None:
    """``salloc`` gave the nodes; the account and the partition are its matter."""
    words = (
        "submit",
        "--site",
        "lumi-g",
        "--mpi",
        "none",
        "--",
        "bash",
        "-c",
        f"echo $(cat {on_lumig.lab}/cpus/$PPID) GPU $SLURM_STEP_GPUS",
    )
    salloc = ("salloc", "-N2", "--exclusive", *gpus, "-t", "5")
    answer = hpclaunch(*words, before=salloc)
    assert answer.returncode == 0, answer.stderr + answer.stdout
    lists = [line for line in answer.stdout.splitlines() if line[:1].isdigit()]
    assert len(lists) == 16
    assert len(set(lists)) == 8
    assert {line.partition(" GPU ")[2] for line in lists} == {"0,1,2,3,4,5,6,7"}


def test_lumi_gs_bundled_training_runs_on_sixteen_ranks(on_lumig: Slurm) -> None:
    answer = hpclaunch(
        *("submit", "--site", "lumi-g", "--account", "project_465000001", "--nodes", "2", "--wait", "--json"),
        *("--mpi", "pmix", "--python", sys.executable, *TRAIN, "--batch-size", "250"),
    )
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["result"]["ranks"] == 16
    assert record_of(document["id"])["binding"]["ranks"][15]["host"] == "n2"


@pytest.fixture
def without_reserve(tmp_path: Path) -> str:
    """A profile as a person might write it who does not know of low-noise mode: masks hold all the cores."""
    text = (resource_dir("site_profiles") / "lumi-g.yaml").read_text()
    reserved = "  reserved_cores: 0,8,16,24,32,40,48,56\n"
    assert reserved in text
    profile = tmp_path / "mine.yaml"
    profile.write_text(text.replace(reserved, "").replace("name: lumi-g", "name: mine", 1))
    return str(profile)


def test_a_refused_mask_is_explained(on_lumig: Slurm, without_reserve: str) -> None:
    usual = ("--site", without_reserve, "--account", "project_465000001", "--mpi", "none")
    answer = hpclaunch("submit", *usual, "--wait", "--json", "--", "true")
    assert answer.returncode == 1
    assert "the mask of local rank 0 (CPUs 48-55) holds CPUs that are not the job's: 48" in answer.stderr
    said = hpclaunch("status", "last").stdout
    assert "Slurm refused the CPU binding: the mask of local rank 0 (CPUs 48-55)" in said
    assert "the job's are 1-7,9-15," in said
    assert "node.reserved_cores: 0,8,16,24,32,40,48,56" in said


def test_a_refused_mask_is_explained_for_each_job_of_an_array(on_lumig: Slurm, without_reserve: str) -> None:
    usual = ("--site", without_reserve, "--account", "project_465000001", "--mpi", "none")
    answer = hpclaunch("submit", *usual, "--array", "0-1", "--wait", "--json", "--", "true")
    jobs = record_of(json.loads(answer.stdout)["id"])["array"]
    assert ["48-55) holds CPUs that are not the job's: 48" in job["reason"] for job in jobs.values()] == [
        True,
        True,
    ]


HELLO = "from mpi4py import MPI; c = MPI.COMM_WORLD; print(f'{PREFIX}rank {c.rank} of {c.size}', flush=True)"


@pytest.mark.parametrize(
    ("mpi", "prefix", "state"),
    [
        ("pmi2", "Hello from ", "failed"),
        ("pmi2", "[n1] ", "failed"),
        ("pmix", "Hello from ", "done"),
        ("pmi2", "tensor parallel ", "done"),
        ("none", "Hello from ", "done"),  # on purpose
    ],
)
def test_any_program_whose_ranks_all_say_rank_0_of_1_has_failed(
    on_slurm: Slurm, mpi: str, prefix: str, state: str
) -> None:
    words = ("submit", "--site", "generic-slurm", "--nodes", "2", "--mpi", mpi, "--wait", "--json", "--")
    answer = hpclaunch(*words, sys.executable, "-c", HELLO.replace("{PREFIX}", prefix))
    record = record_of(json.loads(answer.stdout)["id"])
    assert record["state"] == state, answer.stderr
    if state == "failed":
        assert answer.returncode == 1
        assert "all 2 ranks print 'rank 0 of 1': each ran alone, as srun's plugin pmi2" in record["reason"]


def test_whether_there_is_mpi4py_is_looked_up_once(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look that chooses srun's plugin finds mpi4py, or not: no note may say that it is not known then."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    program = tmp_path / "pi.py"
    program.write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.size)\n")
    usual = ("submit", "--site", "generic-slurm", "--gpus-per-task", "0")
    said = hpclaunch(*usual, "--", "python3", str(program)).stderr
    assert "fits the MPI of python3: Open MPI" in said
    assert "is not known" not in said
    (tmp_path / "mpi4py.py").write_text("raise ImportError('none')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = hpclaunch(*usual, "--", "python3", str(program)).stderr
    assert "python3 names no MPI here (mpi4py), so it is the first that srun" in said
    assert "whether the job's Python has mpi4py is not known; --check-imports tries it first" in said


# An MPI program without mpi.h, for Open MPI, whose handles are addresses of these.
C_PROGRAM = """
extern struct { int x; } ompi_mpi_comm_world;
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Comm_size(void *, int *), printf(const char *, ...);
int main(void) { int n; MPI_Init(0, 0); MPI_Comm_size(&ompi_mpi_comm_world, &n); printf("GOT %d\\n", n);
  return MPI_Finalize(); }
"""


@pytest.mark.parametrize(
    ("plugin", "state", "sizes"),
    [
        (None, "done", ["GOT 2"] * 2),
        ("pmix", "done", ["GOT 2"] * 2),
        ("pmi2", "failed", []),
        ("none", "done", ["GOT 1"] * 2),
    ],
)
def test_a_program_linked_with_another_mpi_than_the_plugins_is_ended(
    on_slurm: Slurm, tmp_path: Path, plugin: str | None, state: str, sizes: list[str]
) -> None:
    """On purpose, with ``--mpi none``, it is; left open, the plugin fits."""
    library = Path(sys.prefix) / "lib"
    if not (library / "libmpi.so.40").exists():
        library = Path("/usr/lib/x86_64-linux-gnu")
    (tmp_path / "size.c").write_text(C_PROGRAM)
    compiler = ("gcc", "-o", str(tmp_path / "size"), str(tmp_path / "size.c"), str(library / "libmpi.so"))
    subprocess.run([*compiler, f"-Wl,-rpath,{library}", "-Wl,--allow-shlib-undefined"], check=True)
    mpi = ("--mpi", plugin) if plugin else ()
    words = ("--site", "generic-slurm", "--nodes", "2", *mpi, "--wait", "--json", "--")
    answer = hpclaunch("submit", *words, str(tmp_path / "size"))
    assert ("fits libopen-pal.so, with which" in answer.stderr) == (plugin is None)
    said = [line for line in answer.stderr.splitlines() if line.startswith("GOT")]
    record = record_of(json.loads(answer.stdout)["id"])
    assert record["state"] == state
    if state == "failed":  # rank 0 looks for all; the other one may say its size before it is ended
        assert said in ([], ["GOT 1"])
        assert "each rank would run alone" in record["reason"]
    else:
        assert said == sizes


def test_a_mask_with_a_reserved_core_is_refused_by_slurm(on_lumig: Slurm, tmp_path: Path) -> None:
    """The same script with core 48, which low-noise mode keeps: Slurm itself ends it."""
    usual = ("--site", "lumi-g", "--account", "project_465000001", "--dry-run", "--", "true")
    script = hpclaunch("submit", *usual).stdout
    assert "0xfe000000000000," in script
    file = tmp_path / "job.sh"
    file.write_text(script.replace("0xfe000000000000,", "0xff000000000000,"))
    output = tmp_path / "out"
    subprocess.run(
        ["sbatch", "--wait", f"--output={output}", str(file)], capture_output=True, cwd=tmp_path, check=False
    )
    assert "CPU binding outside of job step allocation" in output.read_text()
