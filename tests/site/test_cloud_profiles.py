"""The profiles of Slurm in a cloud: nodes and queues are asked of the cluster, the rest is the maker's."""

from __future__ import annotations

from hpclaunch.command_result import CommandResult
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.site.asked_cluster import Wanted, cluster_profile
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.site_scheduler import cite
from tests.in_one_test import in_one_test
from tests.plan.test_golden import NGC, TORCH, script_of
from tests.site.test_shipped_profiles import CLOUDS

# A p5.48xlarge as slurmd -C prints it (awsome-distributed-ai, tips-and-tricks.md), the rest made up.
SAID = {
    "queues": "PartitionName=p5 Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED RootOnly=NO OverSubscribe=NO"
    " State=UP TotalCPUs=768 TotalNodes=4 TRES=cpu=768,node=4,gres/gpu=32\n",
    "nodes": "".join(
        f"NodeName=ip-10-0-0-{n} Arch=x86_64 CoresPerSocket=48 CPUTot=192 Gres=gpu:h100:8"
        " RealMemory=2047961 Sockets=2 Boards=1 State=IDLE ThreadsPerCore=2 Partitions=p5\n"
        for n in range(4)
    ),
    "config": "ClusterName = ml\nSelectType = select/cons_tres\nSLURM_VERSION = 24.05.1\n",
}


@in_one_test("site", CLOUDS)
def test_the_cluster_is_asked_and_the_maker_s_settings_stay(site: str) -> None:
    base = load_site(site)
    said = {key: CommandResult(exit_code=0, stdout=text, stderr="") for key, text in SAID.items()}
    want = Wanted(nodes=4, queue=None, gpu_type=None, gpus=True)
    asked = cluster_profile(base, SLURM.parse_facts(said), want, "scontrol")
    assert asked is not None
    found = asked.profile
    assert found.node is not None
    assert (len(found.node.gpus), found.node.cores, found.node.gpu_type) == (8, 96, "h100")
    assert list(found.queues) == ["p5"]
    assert (found.fabric, found.software) == (base.fabric, base.software)


@in_one_test(
    "framework, gres, words",
    [
        (
            "mpi4py",
            "Gres=gpu:h100:8",
            "a program of mpi4py may use none; --gpu-type (h100) requests them",
        ),
        (
            None,
            "Gres=gpu:h100:8",
            "shows no framework that is known; --gpu-type (h100) or --framework",
        ),
        (None, "Gres=(null)", ""),
    ],
)
def test_nodes_whose_gpus_are_not_requested_are_not_said_to_have_none(
    framework: str | None, gres: str, words: str
) -> None:
    texts = {key: text.replace("Gres=gpu:h100:8", gres) for key, text in SAID.items()}
    said = {key: CommandResult(exit_code=0, stdout=text, stderr="") for key, text in texts.items()}
    want = Wanted(nodes=2, queue=None, gpu_type=None, gpus=None, framework=framework)
    asked = cluster_profile(load_site("generic-slurm"), SLURM.parse_facts(said), want, "scontrol")
    assert asked is not None
    assert cite(asked.profile, asked.profile.node.source if asked.profile.node else None) == "scontrol"
    notes = " ".join(asked.notes)
    assert ("whose GPUs are not requested" in notes, "without GPUs" in notes) == (bool(words), not words)
    assert words in notes
    assert ("no GPU is requested" in notes) == bool(words)


@in_one_test("site", CLOUDS)
def test_pyxis_starts_the_image_and_every_setting_has_its_maker_s_page(site: str) -> None:
    asked = {"site": site, "tasks_per_node": 8, "gpus_per_task": 1, "command": TORCH, "framework": "torch"}
    script = script_of({**asked, "nodes": 2, "environment": NGC})
    assert '--container-image="nvcr.io#nvidia/pytorch:25.06-py3"' in script
    profile = load_site(site)
    maker = "awslabs" if site.startswith("aws") else "GoogleCloudPlatform"
    for variable in (*profile.fabric.multi_node.values(), *profile.software.setup):
        assert f"github.com/{maker}/" in profile.sources[variable.source or ""].url


def test_hyperpod_resumes_jobs_of_several_nodes_itself() -> None:
    asked = {"tasks_per_node": 8, "gpus_per_task": 1, "command": TORCH, "framework": "torch", "nodes": 2}
    resumed = script_of({**asked, "site": "aws-hyperpod"})
    assert "--auto-resume=1" in resumed
    assert "--open-mode=append" in resumed
    assert "--requeue" not in resumed
    assert "--auto-resume" not in script_of({**asked, "site": "aws-parallelcluster"})


def test_tcpx_is_for_jobs_of_several_nodes_only() -> None:
    asked = {"site": "gcp-a3-high", "tasks_per_node": 8, "gpus_per_task": 1, "framework": "torch"}
    one, two = (script_of({**asked, "command": TORCH, "nodes": nodes}) for nodes in (1, 2))
    assert "unset NCCL_NET" in one
    assert "GPUDIRECTTCPX" not in one
    assert "export NCCL_NET=GPUDirectTCPX_v7" in two
    assert 'NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX="/run/tcpx-$SLURM_JOB_ID"' in two
