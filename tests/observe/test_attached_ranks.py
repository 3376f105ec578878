"""What is judged of a running job's ranks, from answers of nodes as ``look.py`` gives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.cli import verify
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.job.job_script import LOOK, one_text
from hpclaunch.lint.rules.binding_rules import RULE_OF_RANK
from hpclaunch.observe.attached_nodes import AttachedNode, Process, parse_nodes
from hpclaunch.observe.attached_ranks import AttachDocument, judge_attached
from hpclaunch.remote.look import DEVICE, MARK, policy_of
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from tests.in_one_test import in_one_test

RIGHT = ["49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47"]


def process(
    pid: int, cpus: str, variables: dict[str, str], ticks: int = 5, program: str = "python"
) -> Process:
    return Process(
        pid=pid,
        parent=1,
        ticks=ticks,
        program=(program,),
        cpus=cpus,
        mems="0-3",
        threads={cpus: 3},
        devices=(),
        variables=variables,
    )


def of_slurm(rank: int, size: int, step: str = "0") -> dict[str, str]:
    """The variables of a rank of a step."""
    number = str(rank)
    who = {"SLURM_STEP_ID": step, "SLURM_PROCID": number, "SLURM_LOCALID": number}
    return {**who, "SLURM_NTASKS": str(size)}


def step(lists: Iterable[str], **more: str) -> tuple[AttachedNode, ...]:
    """One node with a Slurm step of a rank for each list of cores."""
    ranks = list(lists)
    found = [process(100 + n, cpus, {**of_slurm(n, len(ranks)), **more}) for n, cpus in enumerate(ranks)]
    return (AttachedNode(host="nid1", processes=tuple(found)),)


def judged(
    nodes: tuple[AttachedNode, ...], site: str = "lumi-g", planned: Mapping[int, str] = MappingProxyType({})
) -> AttachDocument:
    profile = load_site(site)
    return judge_attached("7", nodes, profile, site_topology(profile), planned)


def test_the_masks_of_the_site_are_right() -> None:
    found = judged(step(RIGHT))
    assert (found.ok, found.finding, found.rules) == (True, "all 8 ranks have a right binding", ())
    assert judged(step(["0-3"]), "generic-slurm").finding == "the rank has a right binding"


def test_ranks_of_a_job_of_hpclaunch_are_compared_with_its_plan() -> None:
    """Two programs that bind themselves to both CPUs are wrong both; one that stays is right."""
    plan = {0: "0", 1: "1"}
    both = judged(step(["0-1", "0-1"]), "generic-slurm", plan)
    assert [(one.verdict, one.planned) for one in both.ranks] == [("cpus-differ", "0"), ("cpus-differ", "1")]
    assert both.remedies[0].startswith("rank 0: on CPUs 0-1, and the job's plan gave it 0: ")
    assert both.note is None
    one = judged(step(["0-1", "1"]), "generic-slurm", plan)
    assert [each.verdict for each in one.ranks] == ["cpus-differ", "ok"]
    assert judged(step(["0", "1"]), "generic-slurm", plan).ok
    shared = judged(step(["0-1", "0-1"]), "generic-slurm", {0: "0-1", 1: "0-1"})
    assert shared.ok, "the plan lets them share"
    assert [each.verdict for each in judged(step(["0-1", "0-1"]), "generic-slurm").ranks] == ["ok", "shared"]


def test_masks_in_core_order_are_far_from_the_gpus() -> None:
    found = judged(step(sorted(RIGHT, key=lambda text: int(text.split("-")[0]))))
    assert not found.ok
    assert [one.verdict for one in found.ranks] == ["far-from-its-gpu"] * 2 + ["ok"] * 2 + [
        "far-from-its-gpu"
    ] * 4
    assert list(found.rules) == ["bind-far-from-gpu"]
    assert found.right is not None
    assert found.right.startswith("srun --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,")
    assert "ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7" in found.right


def test_where_the_site_binds_to_cores_its_launchers_option_is_the_right_one() -> None:
    """taskset would bind what the launcher has bound already."""
    lumi = load_site("lumi-g")
    profile = replace(lumi, binding=replace(lumi.binding, cpu="cores"))
    found = judge_attached("7", step(sorted(RIGHT)), profile, site_topology(profile), {})
    assert found.right is not None
    assert found.right.startswith("srun --cpu-bind=cores; ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7")


def test_ranks_that_choose_the_gpu_near_their_cores_are_right() -> None:
    by_core = dict(sorted(zip(RIGHT, "01234567", strict=True), key=lambda one: int(one[0].split("-")[0])))
    node = step(by_core)[0]
    chosen = [
        process(one.pid, one.cpus, {**one.variables, "ROCR_VISIBLE_DEVICES": gpu})
        for one, gpu in zip(node.processes, by_core.values(), strict=True)
    ]
    assert judged((AttachedNode(host="nid1", processes=tuple(chosen)),)).ok


def test_a_rank_that_sees_a_far_gpu() -> None:
    found = judged(step(["1-7"], ROCR_VISIBLE_DEVICES="0"))
    assert [one.verdict for one in found.ranks] == ["gpu-on-another-numa-node"]
    assert "it sees GPU 0 of NUMA node 3, and its cores are on NUMA node 0" in found.remedies[0]


def test_ranks_without_a_binding_share_cores() -> None:
    found = judged(step(["0-127"] * 8))
    assert not found.ok
    assert "bind-shared-cores" in list(found.rules)


def test_without_a_description_of_the_node_only_shared_cores_are_wrong() -> None:
    assert judged(step(["0", "1"]), "generic-slurm").ok
    found = judged(step(["0", "0"]), "generic-slurm")
    assert [one.verdict for one in found.ranks] != ["ok", "ok"]
    assert found.right is None


def test_the_workers_of_torchrun_are_the_ranks() -> None:
    agent = process(10, "0-127", of_slurm(0, 1), program="torchrun")
    of_torch = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "8", **of_slurm(0, 1)}
    workers = [
        process(20 + n, cpus, {**of_torch, "RANK": str(n), "LOCAL_RANK": str(n)})
        for n, cpus in enumerate(RIGHT)
    ]
    assert judged((AttachedNode(host="nid1", processes=(agent, *workers)),)).ok


def test_the_processes_of_one_rank_are_counted_together() -> None:
    names = of_slurm(0, 1)
    shell, program = process(5, "0-127", names, 1, "bash"), process(2, "1-63", names, 99)
    daemon = process(3, "0", names, 999, "/usr/bin/prted")
    (details,) = judged((AttachedNode(host="nid1", processes=(shell, program, daemon)),)).details
    assert (details.pid, details.processes, details.threads) == (2, 2, 6)
    assert details.thread_cpus == {"0-127": 3, "1-63": 3}
    waiting, child = replace(shell, pid=7), replace(program, parent=7)  # the wrapper is not the rank's
    (details,) = judged((AttachedNode(host="nid1", processes=(waiting, child)),)).details
    assert (details.pid, details.processes, details.thread_cpus) == (2, 1, {"1-63": 3})


def test_all_steps_are_judged_and_named() -> None:
    other = [process(9 + n, cpus, of_slurm(n, 2, step="1")) for n, cpus in enumerate(("49-55", "57"))]
    node = step(RIGHT[1:])[0]
    found = judged((AttachedNode(host="nid1", processes=(*other, *node.processes)),))
    assert [one.step for one in found.details] == ["0"] * 7 + ["1"] * 2
    assert [one.rank for one in found.ranks] == [*range(7), 0, 1]
    assert [one.verdict for one in found.ranks] == ["shared", *["ok"] * 7, "shared"]
    assert "rank 0 (shared), 1 of step 1 (shared) (2 steps: 0, 1)" in found.finding
    assert "rank 1 of step 1 shares CPUs 57 of nid1 with rank 0" in found.remedies[0]
    batch = process(3, "0", of_slurm(0, 1, step="4294967291"))
    assert judged((AttachedNode(host="nid1", processes=(batch, *step(RIGHT)[0].processes)),)).ok


def test_ranks_that_are_not_seen_are_said() -> None:
    node = step(RIGHT)[0]
    found = judged((AttachedNode(host="nid1", processes=node.processes[:4]),))
    assert not found.ok
    assert found.finding.endswith("; 4 of 8 ranks were seen, not 4, 5, 6, 7")


def test_a_job_without_processes() -> None:
    with pytest.raises(BadInputError, match="no process of the job can be seen"):
        judged((AttachedNode(host="nid1", processes=()),))


# --- the answers of nodes ----------------------------------------------------------------------------------


def looked(job: str, variable: str = "PBS_JOBID") -> dict[str, Any]:
    line = [sys.executable, "-c", one_text(LOOK), variable, job]
    (node,) = parse_nodes(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    return {str(one.pid): one for one in node.processes}


def test_a_process_of_the_job_is_found_with_its_variables_at_start() -> None:
    job = f"{os.getpid()}1"
    environment = {**os.environ, "PBS_JOBID": f"{job}.server", "OMP_NUM_THREADS": "7", "API_TOKEN": "x"}
    with subprocess.Popen(["taskset", "-c", "0", "sleep", "60"], env=environment) as sleeping:
        found = looked(job)
        while str(sleeping.pid) not in found or found[str(sleeping.pid)].program != ("sleep", "60"):
            found = looked(job)
        sleeping.kill()
    one = found[str(sleeping.pid)]
    assert (one.cpus, one.threads, one.devices) == ("0", {"0": 1}, ())
    assert (one.variables["OMP_NUM_THREADS"], "API_TOKEN" in one.variables) == ("7", False)
    assert list(found) == [str(sleeping.pid)]


@in_one_test(
    "path, is_one",
    [
        ("/dev/nvidia3", True),
        ("/dev/nvidiactl", False),
        ("/dev/dri/renderD128", True),
        ("/dev/kfd", True),
        ("/dev/cxi0", True),
        ("/dev/infiniband/uverbs1", True),
        ("/dev/null", False),
        ("/home/dev/nvidia3", False),
    ],
)
def test_devices(path: str, is_one: bool) -> None:
    assert (DEVICE.match(path) is not None) == is_one


def test_answers_of_several_nodes_may_be_mixed() -> None:
    text = json.dumps({"host": "n1", "processes": []})
    lines = [
        f"{MARK}n1 0/2 {text[:9]}",
        f"srun: x {MARK}n2 0/1 {text.replace('n1', 'n2')}",
        f"{MARK}n1 1/2 {text[9:]}",
    ]
    assert [node.host for node in parse_nodes("\n".join(lines))] == ["n1", "n2"]
    assert list(parse_nodes(lines[0])) == []


def attach_of(kind: str) -> Any:
    return get_scheduler(kind).attach


def answer(text: str, code: int = 0, error: str = "") -> CommandResult:
    return CommandResult(exit_code=code, stdout=text, stderr=error)


def test_the_jobs_of_slurm() -> None:
    attach = attach_of("slurm")
    job = attach.parse("7", answer("7|RUNNING|3|None|7|n[1-3]\n"))
    assert (job.id, len(job.nodes)) == ("7", 3)
    words = attach.words(job)
    assert words[0] == "env"  # another job's variables are no options of this step
    assert {"--unset=SLURM_NTASKS_PER_GPU", "--unset=SLURM_EXPORT_ENV", "--unset=SLURM_HOSTFILE"} < set(words)
    assert "--unset=SLURM_CONF" not in words
    words = words[words.index("srun") :]
    assert words[:2] == ("srun", "--jobid=7")
    assert {"--nodes=3", "--ntasks=3", "--overlap", "--cpu-bind=none", "--export=ALL"} <= set(words)
    rows = {
        "": "has ended",
        "7|PENDING|1|Priority|7|\n": "is PENDING",
        "7|SUSPENDED|1|None|7|n1\n": "is SUSPENDED",
        "7|RUNNING|1|None|7_0|n1\n8|RUNNING|1|None|7_1|n2\n": "is an array",
        "8|RUNNING|2|None|6+1|n[2-3]\n": "is a component of a heterogeneous job",
    }
    for text, said in rows.items():
        with pytest.raises(BadInputError, match=said):
            attach.parse("7", answer(text))
    with pytest.raises(RefusedError, match="Invalid job id"):
        attach.parse("7", answer("", 1, "slurm_load_jobs error: Invalid job id specified"))


def test_the_components_of_a_heterogeneous_job_as_slurm_22_05_prints_them() -> None:
    attach = attach_of("slurm")
    assert [attach.step_of(name) for name in ("7", "7.2", "7+1", "7_3.0")] == [
        ("7", None),
        ("7", "2"),
        ("7", None),
        ("7_3", "0"),
    ]
    job = attach.parse("7", answer("7|RUNNING|1|None|7+0|n1\n8|RUNNING|2|None|7+1|n[2-3]\n"))
    assert (job.id, job.parts, len(job.nodes)) == ("7", (1, 2), 3)
    assert [words[words.index("srun") :][2:4] for words in attach.commands(job)] == [
        ("--het-group=0", "--nodes=1"),
        ("--het-group=1", "--nodes=2"),
    ]
    assert attach.names_query(job) == ("scontrol", "show", "hostnames", "n1,n[2-3]")


def test_the_jobs_of_pbs_as_recorded() -> None:
    recorded = Path(__file__).parents[1] / "data" / "pbs" / "state-R-qstat-x-f" / "stdout"
    job = attach_of("pbs").parse("10", answer(recorded.read_text()))
    assert job.nodes == ("pbshost",)
    text = "Job Id: 5.s\n    job_state = R\n    exec_host = n1/0*4+n\n\t2/0*4+n1/1\n"
    assert attach_of("pbs").parse("5", answer(text)).nodes == ("n1", "n2")
    with pytest.raises(BadInputError, match="in state Q"):
        attach_of("pbs").parse("5", answer("Job Id: 5.s\n    job_state = Q\n"))


def with_gpu_variable(values: Iterable[str], uuids: dict[str, str] | None = None) -> AttachDocument:
    """The verdict on right masks of LUMI-G, of ranks that see the GPUs that are named so."""
    (node,) = step(RIGHT)
    seen = [
        replace(one, variables={**one.variables, "ROCR_VISIBLE_DEVICES": value})
        for one, value in zip(node.processes, values, strict=True)
    ]
    return judged((replace(node, processes=tuple(seen), gpus=uuids or {}),))


def test_a_gpu_that_is_named_by_its_uuid_is_judged_where_the_node_shows_its_address() -> None:
    topology = site_topology(load_site("lumi-g"))
    assert topology is not None
    uuids = {f"GPU-{gpu.index}a": gpu.bus_id or "" for gpu in topology.gpus}
    right = [f"GPU-{number}" for number in range(8)]
    assert with_gpu_variable(right, uuids).ok
    swapped = with_gpu_variable([right[4], *right[1:4], right[0], *right[5:]], uuids)
    assert [one.rank for one in swapped.ranks if one.verdict == "gpu-on-another-numa-node"] == [0, 4]
    unknown = with_gpu_variable(right)
    assert (unknown.ok, {one.verdict for one in unknown.ranks}) == (False, {"not-judged"})
    assert unknown.finding == "8 of 8 ranks could not be judged: rank 0, 1, 2, 3, 4, 5, 6, 7"


@in_one_test(
    "value, found",
    [("-1", "no-such-gpu"), ("NoDevFiles", "no-such-gpu"), ("MIG-1/0/0", "not-judged"), ("0,-1", "ok")],
)
def test_a_gpu_that_is_hidden_or_a_slice_is_never_right(value: str, found: str) -> None:
    assert with_gpu_variable([value, *"1234567"]).ranks[0].verdict == found


@in_one_test(
    "numa_maps, found, shown",
    [
        ("prefer:0", "memory-on-another-numa-node", "prefer:0"),
        ("prefer=static:3", "ok", "prefer=static:3"),
        ("prefer (many):2-3", "ok", "prefer-many:2-3"),
        ("interleave:0-3", "memory-on-another-numa-node", "interleave:0-3"),
        ("weighted interleave:3", "ok", "weighted-interleave:3"),
        ("bind:0", "memory-on-another-numa-node", "0"),
        ("bind=static:3", "ok", "3"),
        ("of-a-later-kernel:3", "not-judged", "of-a-later-kernel:3"),
        ("default", "ok", "0-3"),
    ],
)
def test_a_memory_policy_is_judged(numa_maps: str, found: str, shown: str) -> None:
    """Of rank 0 of LUMI-G, whose cores are on NUMA node 3."""
    (node,) = step(RIGHT)
    first, *others = node.processes
    mems = policy_of(f"7f0000 {numa_maps} anon=1\n") or "0-3"
    found_of = judged((replace(node, processes=(replace(first, mems=mems), *others)),)).ranks[0]
    assert (found_of.verdict, found_of.mems) == (found, shown)


# --- GPUs that ranks share or have not ---------------------------------------------------------------------

LUMI = {gpu.index: str(gpu.bus_id) for gpu in site_topology(load_site("lumi-g")).gpus}  # type: ignore[union-attr]


def verdicts(values: Iterable[str | None], **more: Any) -> list[str]:
    """Verdicts on right masks of LUMI-G, of ranks with these values of ROCR_VISIBLE_DEVICES."""
    given, ranks = list(values), []
    opened, variables = more.pop("opened", ()), more.pop("variables", {})
    for n, value in enumerate(given):
        shown = {} if value is None else {"ROCR_VISIBLE_DEVICES": value}
        one = process(100 + n, RIGHT[n], {**of_slurm(n, len(given)), **shown, **variables})
        ranks.append(replace(one, devices=opened[n] if opened else ()))
    node = AttachedNode(host="nid1", processes=tuple(ranks), **more)
    return [one.verdict for one in judged((node,)).ranks]


def test_two_ranks_on_one_gpu_are_wrong() -> None:
    assert verdicts(["0", "0"]) == ["gpu-shared"] * 2
    assert verdicts(["0,1"] * 2) == ["ok"] * 2  # each chooses by its local rank
    assert verdicts(["0,1"] * 3)[:2] == ["gpu-shared"] * 2
    assert RULE_OF_RANK["gpu-shared"] == "ranks-share-gpus"


@in_one_test(
    "values, wrong",
    [
        (["0,1", "0"], [0, 1]),
        (["0", "1,0"], [0, 1]),
        (["0,1", "1,2", "3"], [0, 1]),
        (["0,1", "1,0"], []),  # the same set in another order
        (["0,1", "2,3"], []),
        (["0,1", "0,1", "2"], []),
        (["0,1,-1", "2"], []),
    ],
)
def test_sets_of_gpus_that_overlap_are_shared(values: list[str], wrong: list[int]) -> None:
    found = verdicts(values)
    assert [n for n, verdict in enumerate(found) if verdict == "gpu-shared"] == wrong, found


def test_the_gpu_that_is_in_both_sets_is_named() -> None:
    found = with_gpu_variable(["0,1", "0", *"234567"])
    assert f"ranks 0, 1 of nid1 share 1 GPU ({LUMI[0]}; ROCR_VISIBLE_DEVICES=0,1)" in found.remedies[0]
    assert [one.rank for one in found.ranks if one.verdict == "gpu-shared"] == [0, 1]


def test_a_rank_that_has_opened_one_gpu_of_its_set_shares_only_that_one() -> None:
    files = {"/dev/nvidia0": LUMI[0], "/dev/nvidia1": LUMI[1]}
    opened = ("/dev/nvidia1",), ()
    assert "gpu-shared" not in verdicts(["0,1", "0"], opened=opened, devices=files)
    assert "gpu-shared" not in verdicts(["0,1", "0,1"], opened=opened, devices=files)
    assert verdicts(["0,1", "1"], opened=opened, devices=files) == ["gpu-shared"] * 2


def test_gpus_that_slurm_has_given_each_rank_are_not_the_same() -> None:
    """With --gpus-per-task each rank calls its GPU 0; only device files tell which one it is."""
    given: dict[str, Any] = {"variables": {"SLURM_GPUS_ON_NODE": "2"}}
    assert verdicts(["0", "0"], **given) == ["not-judged"] * 2
    files = {"/dev/dri/renderD128": LUMI[0], "/dev/dri/renderD129": LUMI[1]}
    first, second = ("/dev/dri/renderD128", "/dev/kfd"), ("/dev/dri/renderD129", "/dev/kfd")
    assert verdicts(["0", "0"], **given, opened=(first, second), devices=files) == ["ok"] * 2
    assert verdicts(["0", "0"], **given, opened=(first, first), devices=files) == ["gpu-shared"] * 2


@in_one_test(
    "value, found",
    [("8", "no-such-gpu"), ("0", "ok"), ("", "no-such-gpu"), ("GPU-ab", "ok"), ("GPU-cd", "no-such-gpu"),
     ("MIG-1", "ok"), ("MIG-2", "no-such-gpu")],
)  # fmt: skip
def test_a_gpu_that_the_node_has_not(value: str, found: str) -> None:
    uuids, slices = {"GPU-ab12": LUMI[0]}, {"MIG-1a": "GPU-ab12"}
    assert verdicts([value], gpus=uuids, slices=slices) == [found]


def test_a_list_with_numbers_is_the_nodes_where_it_lists_all_gpus() -> None:
    """``nvidia-smi -L`` numbers the GPUs that its cgroup has."""
    whole = {f"GPU-{number}a": f"GPU {number}" for number in range(8)}
    assert with_gpu_variable([f"GPU-{number}" for number in range(8)], whole).ok
    assert verdicts(["GPU-4"], gpus=whole) == ["gpu-on-another-numa-node"]
    assert verdicts(["GPU-0", "0"], gpus=whole) == ["gpu-shared"] * 2
    assert verdicts(["GPU-9"], gpus=whole) == ["no-such-gpu"]
    part = {"GPU-4a": "GPU 0", "GPU-5a": "GPU 1"}
    assert verdicts(["GPU-4"], gpus=part) == ["ok"]  # which of the node's it is is not known
    assert verdicts(["GPU-4", "GPU-4a"], gpus=part) == ["gpu-shared"] * 2
    assert verdicts(["GPU-9"], gpus=part) == ["not-judged"]


def test_a_uuid_that_nothing_lists_is_not_judged_and_said_so() -> None:
    for site in ("lumi-g", "generic-slurm"):
        found = judged(step(RIGHT[:1], ROCR_VISIBLE_DEVICES="GPU-12"), site)
        assert [one.verdict for one in found.ranks] == ["not-judged"]
        assert found.remedies == ("rank 0: nothing on nid1 tells which GPU is GPU-12",)
    assert judged(step(RIGHT[:1], ROCR_VISIBLE_DEVICES="0"), "generic-slurm").ok


LISTS = {
    "nvidia-smi": """\
GPU 0: NVIDIA A100 (UUID: GPU-ab12)
  MIG 1g.5gb     Device  0: (UUID: MIG-1a)
GPU 1: NVIDIA A100 (UUID: GPU-cd34)
""",
    "rocm-smi": """\
GPU[0]\t\t: Unique ID: 0x1f3e
GPU[1]\t\t: Unique ID: 0xd1e5c0ffee000001
GPU[2]\t\t: Unique ID: N/A
GPU[0]\t\t: PCI Bus: 0000:C1:00.0
GPU[1]\t\t: PCI Bus: 0000:C6:00.0
GPU[2]\t\t: PCI Bus: 0000:C9:00.0
""",
}


@in_one_test(
    "program, value, gpus, slices",
    [
        ("nvidia-smi", "GPU-ab", {"GPU-ab12": "GPU 0", "GPU-cd34": "GPU 1"}, {"MIG-1a": "GPU-ab12"}),
        ("nvidia-smi", "MIG-1a", {"GPU-ab12": "GPU 0", "GPU-cd34": "GPU 1"}, {"MIG-1a": "GPU-ab12"}),
        ("nvidia-smi", "0", {}, {}),  # a number asks for no list
        ("rocm-smi", "GPU-1", {"GPU-0000000000001f3e": "0000:c1:00.0",
                               "GPU-d1e5c0ffee000001": "0000:c6:00.0"}, {}),
        ("none", "GPU-1", {}, {}),
    ],
)  # fmt: skip
def test_the_lists_of_the_vendors_programs(
    program: str, value: str, gpus: dict[str, str], slices: dict[str, str], tmp_path: Path
) -> None:
    """On a node whose driver shows no files; the answers are in the form of the programs' own."""
    folder = tmp_path / f"{program}-{value}"
    folder.mkdir()
    if program in LISTS:
        (folder / program).write_text(f"#!/bin/sh\ncat <<'END'\n{LISTS[program]}END\n")
        (folder / program).chmod(0o755)
    job = f"{os.getpid()}3"
    environment = {"PBS_JOBID": f"{job}.server", "ROCR_VISIBLE_DEVICES": value, "PATH": os.environ["PATH"]}
    with subprocess.Popen(["sleep", "60"], env=environment) as sleeping:
        line = [sys.executable, "-c", one_text(LOOK), "PBS_JOBID", job]
        path = f"{folder}:{os.environ['PATH']}"
        done = subprocess.run(
            line, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
        )
        sleeping.kill()
    (node,) = parse_nodes(done.stdout)
    assert (node.gpus, node.slices) == (gpus, slices)


def test_two_slices_of_one_gpu_are_two() -> None:
    uuids, slices = {"GPU-ab12": LUMI[0]}, {"MIG-1a": "GPU-ab12", "MIG-2b": "GPU-ab12"}
    assert verdicts(["MIG-1a", "MIG-2b"], gpus=uuids, slices=slices) == ["ok"] * 2
    assert verdicts(["MIG-1a", "MIG-1a"], gpus=uuids, slices=slices) == ["gpu-shared"] * 2


def test_more_threads_than_cpus() -> None:
    found = judged(step(RIGHT[:1], OMP_NUM_THREADS="64"))
    assert [one.verdict for one in found.ranks] == ["more-threads-than-cpus"]
    assert "64 OpenMP threads on 7 CPUs" in found.remedies[0]
    assert judged(step(RIGHT[:1], OMP_NUM_THREADS="7,1")).ok
    assert RULE_OF_RANK["more-threads-than-cpus"] == "threads-over-cpus"


def with_threads(threads: dict[str, int], omp: str) -> AttachDocument:
    """A rank of LUMI-G whose main thread runs on core 49."""
    (node,) = step(["49"], OMP_NUM_THREADS=omp)
    one = replace(node.processes[0], threads=threads)
    return judged((replace(node, processes=(one,)),))


def test_threads_that_openmp_has_bound_to_a_core_each_are_right() -> None:
    """OMP_PROC_BIND binds the main thread to one core as well; a helper of ROCr may run on all."""
    each = {str(cpu): 1 for cpu in range(49, 56)}
    found = with_threads({**each, "0-127": 2}, "7")
    assert [(one.verdict, one.cpus) for one in found.ranks] == [("ok", "49-55")]
    on_one = with_threads({"49": 7, "0-127": 2}, "7")
    assert [(one.verdict, one.cpus) for one in on_one.ranks] == [("more-threads-than-cpus", "49")]


@in_one_test(
    "running, found",
    [
        ({"49-55": 9}, "more-threads-than-cpus"),
        ({"49-55": 8}, "ok"),  # one of them may be a helper that polls
        ({"49-55": 7, "0-127": 5}, "ok"),  # helpers that may run elsewhere, as ROCr's
        ({"49": 6, "50-55": 3}, "more-threads-than-cpus"),
        ({}, "ok"),
    ],
)
def test_threads_that_run_are_compared_with_the_cpus(running: dict[str, int], found: str) -> None:
    """Of a rank with 7 CPUs and 60 threads, whose OMP_NUM_THREADS is not set."""
    (node,) = step(RIGHT[:1])
    one = replace(node.processes[0], threads={"49-55": 60}, running=running)
    seen = judged((replace(node, processes=(one,)),))
    assert [each.verdict for each in seen.ranks] == [found]
    assert found == "ok" or "9 threads that run, at two looks 0.2 s apart, on 7 CPUs" in seen.remedies[0]


THREADS = """
import sys, threading, time
busy, sleeping = map(int, sys.argv[1:])
import hashlib
def spin():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200000)  # without Python's lock
for _ in range(busy): threading.Thread(target=spin, daemon=True).start()
for _ in range(sleeping): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("busy", "sleeping"), [(5, 3), (0, 9)])
def test_only_threads_that_run_at_both_looks_are_counted(busy: int, sleeping: int) -> None:
    job = f"{os.getpid()}{busy}{sleeping}2"
    words = ["taskset", "-c", "0", sys.executable, "-c", THREADS, str(busy), str(sleeping)]
    environment = {**os.environ, "PBS_JOBID": f"{job}.server"}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        one = looked(job)[str(program.pid)]
        program.kill()
    assert one.threads == {"0": busy + sleeping + 1}
    assert one.running == ({"0": busy} if busy else {})


def of_two_steps(first: str, second: str, **more: str) -> list[str]:
    """Verdicts on a rank of LUMI-G in each of two steps, with these values of ROCR_VISIBLE_DEVICES."""
    gpus = [first, second]
    found = [
        process(
            100 + n,
            RIGHT[0].split("-")[n],
            {**of_slurm(0, 1, str(n)), "ROCR_VISIBLE_DEVICES": gpus[n], **more},
        )
        for n in range(2)
    ]
    return [one.verdict for one in judged((AttachedNode(host="nid1", processes=tuple(found)),)).ranks]


def test_ranks_of_two_steps_may_share_a_gpu() -> None:
    assert of_two_steps("0", "0") == ["gpu-shared"] * 2
    assert of_two_steps("0", "1") == ["ok", "ok"]
    assert of_two_steps("0,1", "0") == ["gpu-shared"] * 2
    assert of_two_steps("0,1", "0,1") == ["ok", "ok"]  # each may take another
    # Slurm numbers the GPUs of a step from 0 where it constrains devices.
    assert of_two_steps("0", "0", SLURM_GPUS_ON_NODE="1") == ["ok", "ok"]


def test_a_set_of_gpus_that_more_ranks_of_all_steps_have_than_it_has_gpus() -> None:
    ranks = [
        process(100 + n, RIGHT[n], {**of_slurm(local, 2 - step, str(step)), "ROCR_VISIBLE_DEVICES": "0,1"})
        for n, (local, step) in enumerate(((0, 0), (1, 0), (0, 1)))
    ]
    found = judged((AttachedNode(host="nid1", processes=tuple(ranks)),))
    assert [one.verdict for one in found.ranks] == ["gpu-shared"] * 3
    two = judged((AttachedNode(host="nid1", processes=tuple(ranks[:2])),))
    assert [one.verdict for one in two.ranks] == ["ok"] * 2


# --- whose GPUs a number counts ----------------------------------------------------------------------------


def of_gpus(ranks: Iterable[Mapping[str, str]], site: str = "lumi-g") -> list[str]:
    """Verdicts on ranks with right masks of LUMI-G and these variables."""
    given = list(ranks)
    found = [process(100 + n, RIGHT[n], {**of_slurm(n, len(given)), **more}) for n, more in enumerate(given)]
    return [one.verdict for one in judged((AttachedNode(host="nid1", processes=tuple(found)),), site).ranks]


def of_amd(rocr: str, **more: str) -> dict[str, str]:
    return {"ROCR_VISIBLE_DEVICES": rocr, **more}


@in_one_test(
    "first, second, found",
    [
        (of_amd("0,1,2", HIP_VISIBLE_DEVICES="0"), of_amd("0,1,2", HIP_VISIBLE_DEVICES="0"), "gpu-shared"),
        (of_amd("0,1,2", HIP_VISIBLE_DEVICES="0"), of_amd("0,1,2", HIP_VISIBLE_DEVICES="1"), "ok"),
        (of_amd("0", HIP_VISIBLE_DEVICES="1"), of_amd("1", HIP_VISIBLE_DEVICES="1"), "no-such-gpu"),
        (of_amd("0", HIP_VISIBLE_DEVICES="0"), of_amd("1", HIP_VISIBLE_DEVICES="0"), "ok"),
        (of_amd("0", HIP_VISIBLE_DEVICES=""), of_amd("1", HIP_VISIBLE_DEVICES="-1"), "no-such-gpu"),
        (of_amd("0,1", CUDA_VISIBLE_DEVICES="1"), of_amd("0,1", CUDA_VISIBLE_DEVICES="1"), "gpu-shared"),
        (of_amd("1,0", HIP_VISIBLE_DEVICES="1"), of_amd("0,1", HIP_VISIBLE_DEVICES="1"), "ok"),
        (of_amd("0,1", HIP_VISIBLE_DEVICES="0", CUDA_VISIBLE_DEVICES="5"),
         of_amd("0,1", HIP_VISIBLE_DEVICES="1", CUDA_VISIBLE_DEVICES="5"), "ok"),
        ({"HIP_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}, "ok"),
    ],
)  # fmt: skip
def test_hip_counts_within_the_list_of_rocr(
    first: dict[str, str], second: dict[str, str], found: str
) -> None:
    """The GPUs of LUMI-G are AMD's."""
    assert of_gpus([first, second]) == [found] * 2


def test_on_gpus_of_nvidia_only_cudas_own_variable_counts() -> None:
    """Slurm may set the variables of all vendors (gres.conf, Flags); a program then sets CUDA's."""
    both = {"ROCR_VISIBLE_DEVICES": "0,1,2,3"}
    found = of_gpus([{**both, "CUDA_VISIBLE_DEVICES": str(n)} for n in (0, 0)], "perlmutter")
    assert found[:2] == ["gpu-shared"] * 2
    assert "gpu-shared" not in of_gpus(
        [{**both, "CUDA_VISIBLE_DEVICES": str(n)} for n in (0, 1)], "perlmutter"
    )


def slurms(value: str, given: str, **more: str) -> dict[str, str]:
    return {"ROCR_VISIBLE_DEVICES": value, "SLURM_STEP_GPUS": given, "SLURM_GPUS_ON_NODE": "2", **more}


@in_one_test(
    "values, given, found",
    [
        (["0", "0"], ["0,1", "0,1"], ["gpu-shared"] * 2),  # --gpus-per-node=2
        (["0", "1"], ["0,1", "0,1"], ["ok"] * 2),
        (["0", "0"], ["4", "5"], ["ok"] * 2),  # --gpus-per-task=1, devices constrained
        (["4", "5"], ["4", "5"], ["ok"] * 2),  # the same, not constrained
        (["4", "4"], ["4", "4"], ["gpu-shared"] * 2),
        (["7", "0"], ["0,1", "0,1"], ["no-such-gpu", "ok"]),
        (["0", "0"], ["1,2", "1,2"], ["gpu-shared"] * 2),
        (["1", "1"], ["1,2", "1,2"], ["gpu-shared"] * 2),  # GPU 1 or 2: the same one for both
        (["1", "0"], ["1,2", "1,2"], ["ok"] * 2),
        (["0,1", "0"], ["4,5", "4,5"], ["gpu-shared"] * 2),
    ],
)
def test_the_gpus_that_slurm_gave(values: list[str], given: list[str], found: list[str]) -> None:
    assert of_gpus(map(slurms, values, given)) == found


def test_the_gpus_that_slurm_gave_two_steps() -> None:
    """Two steps with a GPU each call it 0; of two with the same GPUs, 0 is the same one."""

    def step_of(given: Sequence[str]) -> list[str]:
        ranks = [
            process(100 + n, RIGHT[n], {**of_slurm(0, 1, str(n)), **slurms("0", gpus)})
            for n, gpus in enumerate(given)
        ]
        return [one.verdict for one in judged((AttachedNode(host="nid1", processes=tuple(ranks)),)).ranks]

    assert step_of(["2", "3"]) == ["ok"] * 2
    assert step_of(["2", "2"]) == ["gpu-shared"] * 2
    assert step_of(["2,3", "2,3"]) == ["gpu-shared"] * 2


TWO_GPUS = """\
schema: 1
name: two-gpus
extends: generic-slurm
description: two NUMA nodes, each with a core and a GPU
node:
  cpu_model: any
  cores: 2
  numa: [{id: 0, cores: '0'}, {id: 1, cores: '1'}]
  gpus: [{numa: 1}, {numa: 0}]
"""


@in_one_test(
    "cpus, value, found",
    [
        (("1", "0"), "0,1", ["ok", "ok"]),
        (("0", "1"), "0,1", ["far-from-its-gpu"] * 2),
        (("1", "0"), None, ["ok", "ok"]),
    ],
)
def test_ranks_that_see_both_gpus_of_a_node_take_them_by_place(
    cpus: tuple[str, str], value: str | None, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "two-gpus.yaml").write_text(TWO_GPUS)
    more = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    seen = judged(step(cpus, **more), str(tmp_path / "two-gpus.yaml"))
    assert [one.verdict for one in seen.ranks] == found


@in_one_test(
    "lists, value, found",
    [
        ((RIGHT[4], RIGHT[5]), "4,5", ["ok"] * 2),
        ((RIGHT[4], RIGHT[6]), "4,6", ["ok"] * 2),
        ((RIGHT[6], RIGHT[4]), "4,6", ["gpu-on-another-numa-node"] * 2),
        ((RIGHT[6], RIGHT[4]), "6,4", ["ok"] * 2),
        ((RIGHT[0], RIGHT[4]), "4,5,6", ["ok"] * 2),  # which one each takes is not known
    ],
)
def test_ranks_with_the_same_part_of_a_nodes_gpus_take_them_by_place(
    lists: tuple[str, str], value: str, found: list[str]
) -> None:
    assert [one.verdict for one in judged(step(lists, ROCR_VISIBLE_DEVICES=value)).ranks] == found


@in_one_test(
    "value, said",
    [("", "variable hides each"), ("-1", "variable hides each"), ("9", "job has no such")],
)
def test_a_rank_without_a_gpu_is_not_far_from_one(value: str, said: str) -> None:
    found = judged(step(["1-7"], ROCR_VISIBLE_DEVICES=value))
    shown = f"rank 0: ROCR_VISIBLE_DEVICES={value}, and the {said} GPU of nid1; give it one that the job has"
    assert (found.remedies, found.rules) == ((shown,), ("gpus-overridden",))


# --- launches ----------------------------------------------------------------------------------------------


def launched(kind: str, rank: int, size: int, **more: str) -> dict[str, str]:
    """The variables of a rank of a launcher outside of Slurm's steps."""
    names = {
        "mpich": ("PMI_RANK", "PMI_LOCAL_RANK", "PMI_SIZE"),
        "pals": ("PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_SIZE"),
        "openmpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
        "flux": ("FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"),
        "torch": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    }[kind]
    return {**dict(zip(names, (str(rank), str(rank), str(size)), strict=True)), **more}


def two_launches(kind: str, ids: Sequence[dict[str, str]], parents: Sequence[int]) -> AttachDocument:
    """Two launches of two ranks on the same two cores and GPUs."""
    ranks = [
        replace(
            process(
                100 + 10 * n + rank, RIGHT[rank], {**launched(kind, rank, 2, **ids[n]), **of_amd(str(rank))}
            ),
            parent=parents[n],
        )
        for n in range(2)
        for rank in range(2)
    ]
    return judged((AttachedNode(host="nid1", processes=tuple(ranks)),))


@in_one_test(
    "kind, ids, parents, names",
    [
        ("flux", [{"FLUX_JOB_ID": f"\u0192{one}"} for one in "AB"], [1, 1], ["launch fA", "launch fB"]),
        ("pals", [{"PALS_APID": "a"}, {"PALS_APID": "b"}], [1, 1], ["launch a", "launch b"]),
        ("openmpi", [{"PMIX_NAMESPACE": "1"}, {"PMIX_NAMESPACE": "2"}], [1, 1], ["launch 1", "launch 2"]),
        ("torch", [{"TORCHELASTIC_RUN_ID": one} for one in "xy"], [1, 1], ["launch x", "launch y"]),
        ("torch", [{"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n", "MASTER_PORT": port} for port in "12"],
         [1, 1], ["launch n:1:none", "launch n:2:none"]),
        ("mpich", [{}, {}], [7, 8], ["launch 1", "launch 2"]),  # two mpiexec
        ("mpich", [{}, {}], [7, 7], ["launch 1", "launch 2"]),  # a loop of a script
        ("torch", [{"TORCHELASTIC_RUN_ID": "none"}] * 2, [7, 8], ["launch none 1", "launch none 2"]),
    ],
)  # fmt: skip
def test_two_launches_at_once_are_told_apart(
    kind: str, ids: list[dict[str, str]], parents: list[int], names: list[str]
) -> None:
    found = two_launches(kind, ids, parents)
    assert [one.step for one in found.details] == [names[0]] * 2 + [names[1]] * 2
    assert [one.verdict for one in found.ranks] == ["gpu-shared"] * 4
    assert f"0 of {names[0]} (gpu-shared)" in found.finding
    assert f"(2 launches: {', '.join(names)})" in found.finding
    assert f" and CPUs 57-63 of nid1 with rank 1 of {names[0]}; give each launch its own" in found.remedies[0]


@pytest.mark.parametrize(("name", "size"), [("a launch of more ranks", 4), ("one of the same size", 2)])
def test_two_launches_on_two_nodes_have_their_own_ranks(name: str, size: int) -> None:
    """Each mpiexec has two ranks per node; the launch of four goes on on the second node."""
    first = [replace(process(100 + n, RIGHT[n], launched("mpich", n, 4)), parent=7) for n in range(2)]
    first += [replace(process(110 + n, RIGHT[n + 2], launched("mpich", n, size)), parent=8) for n in range(2)]
    base = {"PMI_LOCAL_RANK": "0"}
    second = [
        replace(process(200 + n, RIGHT[n], {**launched("mpich", 2 + n, 4), **base}), parent=7)
        for n in range(2)
    ]
    if size == 4:
        second += [
            replace(process(210 + n, RIGHT[n + 2], {**launched("mpich", 2 + n, 4), **base}), parent=8)
            for n in range(2)
        ]
    nodes = tuple(
        AttachedNode(host=host, processes=tuple(ranks)) for host, ranks in (("nid1", first), ("nid2", second))
    )
    found = judged(nodes)
    ranks = [(one.step, one.rank) for one in found.details]
    assert ranks == [("launch 1", n) for n in range(4)] + [("launch 2", n) for n in range(size)], name
    assert "were seen" not in found.finding


def test_the_processes_of_one_rank_are_no_second_launch() -> None:
    """A wrapper and its child, loaders of data, a daemon that has lost its parent."""
    variables = launched("mpich", 0, 1)
    wrapper = replace(process(50, RIGHT[0], variables, program="bash"), parent=40)
    program = replace(process(51, RIGHT[0], variables, 99), parent=50)
    loader = replace(process(52, RIGHT[0], variables), parent=51)
    daemon = replace(process(30, RIGHT[0], variables, program="wandb-core"), parent=1)
    for found in ((wrapper, program, loader, daemon), (daemon, loader, program, wrapper)):
        seen = judged((AttachedNode(host="nid1", processes=found),))
        assert [(one.pid, one.processes, one.step) for one in seen.details] == [(51, 3, "")]


def test_a_part_of_the_shell_of_a_rank_is_no_second_launch() -> None:
    """Behind a process that is not seen as a rank, as the ``tee`` of hpclaunch's own shell of a rank is."""
    variables = launched("mpich", 0, 1)
    shell = replace(process(50, RIGHT[0], variables, program="bash"), parent=40)
    part = replace(process(66, RIGHT[0], variables, program="bash"), parent=65)
    program = replace(process(72, RIGHT[0], variables, 99), parent=50)
    seen = judged((AttachedNode(host="nid1", processes=(shell, part, program)),))
    assert [(one.rank, one.step) for one in seen.details] == [(0, "")]
    assert seen.finding == "the rank has a right binding"


def test_ranks_that_have_shells_of_their_own_are_one_launch() -> None:
    ranks = [replace(process(60 + n, RIGHT[n], launched("mpich", n, 8)), parent=20 + n) for n in range(8)]
    found = judged((AttachedNode(host="nid1", processes=tuple(ranks)),))
    assert (found.finding, {one.step for one in found.details}) == ("all 8 ranks have a right binding", {""})


def test_a_launch_of_workers_that_mpiexec_starts_node_by_node_is_one() -> None:
    """``mpiexec -n 1 --hosts NODE torchrun --node-rank N``, once for each node."""
    nodes = []
    for n in range(2):
        meeting = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "nid1", "MASTER_PORT": "29500"}
        outer = {**launched("pals", 0, 1), "PALS_APID": str(n)}
        workers = [
            process(
                20 + rank, RIGHT[rank],
                {**outer, **meeting, "RANK": str(8 * n + rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "16"},
            )
            for rank in range(8)
        ]  # fmt: skip
        agent = process(10, "0-127", outer, program="torchrun")
        nodes.append(AttachedNode(host=f"nid{n + 1}", processes=(agent, *workers)))
    found = judged(tuple(nodes))
    assert (found.ok, found.finding) == (True, "all 16 ranks have a right binding")


def test_each_step_has_ranks_of_its_own_kind() -> None:
    """torchrun in step 0, a program of srun in step 1 on the GPU of a worker."""
    agent = process(10, "0-127", of_slurm(0, 1), program="torchrun")
    torch = {"TORCHELASTIC_RUN_ID": "x", **of_slurm(0, 1)}
    workers = [
        replace(process(20 + n, RIGHT[n], {**torch, **launched("torch", n, 2), **of_amd(str(n))}), parent=10)
        for n in range(2)
    ]
    other = process(30, RIGHT[1], {**of_slurm(0, 1, "1"), **of_amd("1")})
    found = judged((AttachedNode(host="nid1", processes=(agent, *workers, other)),))
    assert [(one.step, one.rank) for one in found.details] == [("0", 0), ("0", 1), ("1", 0)]
    assert [one.verdict for one in found.ranks] == ["ok", "gpu-shared", "gpu-shared"]
    assert found.note is None  # the agent has started ranks


def test_a_program_of_no_rank_is_named() -> None:
    (node,) = step(RIGHT)
    batch = [
        replace(process(3, "0-127", {}, program="/bin/bash"), parent=1),
        replace(process(4, "0-127", {}, program="/usr/bin/srun"), parent=3),
        replace(process(5, "0", {}, program="python3"), parent=3),
    ]
    found = judged((replace(node, processes=(*batch, *node.processes)),))
    assert (found.ok, found.note) == (
        True,
        "1 process of no rank, not judged: python3 (pid 5 of nid1, CPUs 0)",
    )


def test_a_job_of_a_sites_own_file_is_judged_by_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record has the name in the file, which no other place knows; its request has the path."""
    file = tmp_path / "two.yaml"
    file.write_text(TWO_GPUS)
    record = SimpleNamespace(scheduler_id="7", site="two-gpus", request={"site": str(file)}, array={})
    handle = SimpleNamespace(record=record, binding=lambda: None)
    monkeypatch.setattr(verify, "named", lambda job: handle)
    job, profile, planned = verify._asked("last", None)
    assert (job, profile.name, planned) == ("7", "two-gpus", {})
