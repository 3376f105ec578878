"""The nodes and partitions of a Slurm cluster, as scontrol prints them. Pure.

Keys and values follow scontrol's manual and slurm.conf's (22.05 to 25.05): MaxTime and MaxNodes are UNLIMITED
or a limit, OverSubscribe=EXCLUSIVE gives whole nodes, State=UP takes jobs and starts them. A node's Gres is
``gpu:a100:4(S:0-1)`` or ``gpu:4``, several with commas; CPUEfctv (from 22.05 on) is CPUTot without the CPUs
of CoreSpecCount or CPUSpecList.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeGpus, NodeKind, QueueFacts

_FORM = package_patterns("scheduler/forms.json", "slurm_nodes")
_NODES = package_constants("scheduler/nodes.json", "slurm")
_OWN = re.compile(rf"\b(?:{'|'.join(_NODES.own)})=.*?(?=\s+[A-Z]\w*=|$)")
COUNT = "HpclaunchNodes"
"""Key of the number of nodes that a line stands for."""
_Row = dict[str, str]


def parse_facts(answers: Mapping[str, CommandResult]) -> ClusterFacts:
    """Return what these answers to ``facts_commands`` say. Raises RefusedError with Slurm's own words."""
    queues = _rows(answers, "queues", "PartitionName")
    nodes = _rows(answers, "nodes", "NodeName")
    config = _config(answers)
    tier = max((_number(row, "PriorityTier") or 0 for row in queues), default=0)
    open_ones = [row for row in queues if _takes_jobs(row)]
    select = config.get("SelectType", "")
    return ClusterFacts(
        version=config.get("SLURM_VERSION"),
        cluster=config.get("ClusterName"),
        queues=tuple(
            _queue(row, nodes, tier) for row in sorted(open_ones, key=lambda row: row.get("Default") != "YES")
        ),
        nodes=tuple(_node(row) for row in nodes),
        whole_nodes=select == "select/linear",
        gpu_request=("gpus-per-node" if select == "select/cons_tres" else "gres") if select else None,
        counts_memory="MEMORY" in config["SelectTypeParameters"].upper()
        if "SelectTypeParameters" in config
        else None,
        confines_cpus=_confines(config),
    )


def _rows(answers: Mapping[str, CommandResult], name: str, key: str) -> list[_Row]:
    answer = answers.get(name)
    if answer is None:
        return []
    if answer.exit_code != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines() or ["no reason given"]
        raise RefusedError(f"scontrol show {'partition' if name == 'queues' else 'node'}: {said[0]}")
    # The first value counts: a reason, which comes last, is free text.
    rows = [dict(reversed(_FORM.pair.findall(line))) for line in answer.stdout.splitlines()]
    return [row for row in rows if key in row]


def _config(answers: Mapping[str, CommandResult]) -> _Row:
    """Return the settings of slurm.conf and, behind them, of cgroup.conf; none where not shown."""
    answer = answers.get("config")
    if answer is None or answer.exit_code != 0:
        return {}
    return dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", answer.stdout, re.MULTILINE))


def _confines(config: _Row) -> bool | None:
    """Whether task/cgroup holds jobs in their cores: ConstrainCores of cgroup.conf, usually off."""
    if "TaskPlugin" not in config:
        return None
    return "task/cgroup" in config["TaskPlugin"] and config.get("ConstrainCores") == "yes"


def _number(row: Mapping[str, str], key: str) -> int | None:
    text = row.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _takes_jobs(row: _Row) -> bool:
    return row.get("State", "UP") == "UP" and row.get("RootOnly") != "YES"


def _queue(row: _Row, nodes: Sequence[_Row], tier: int) -> QueueFacts:
    limits = [limit for key in ("MaxNodes", "TotalNodes") if (limit := _number(row, key))]
    walltime, preempts = row.get("MaxTime", ""), row.get("PreemptMode", "OFF").partition(",")[0]
    only_for = (
        f"{key}={row[key]}"
        for key in ("AllowGroups", "AllowAccounts", "AllowQos")
        if row.get(key, "ALL").upper() not in ("ALL", "(NULL)", "N/A")
    )
    return QueueFacts(
        name=row["PartitionName"],
        kind="partition",
        min_nodes=_number(row, "MinNodes") or 1,
        max_nodes=min(limits, default=None),
        max_walltime=walltime if _FORM.walltime.fullmatch(walltime) else None,
        whole_node=row.get("OverSubscribe") == "EXCLUSIVE",
        has_gpus=_has_gpus(row, nodes),
        max_cpus_per_node=_number(row, "MaxCPUsPerNode"),
        only_for=" ".join(only_for),
        preemptable=preempts in ("CANCEL", "REQUEUE") and (_number(row, "PriorityTier") or 0) < tier,
    )


def _has_gpus(row: _Row, nodes: Sequence[_Row]) -> bool | None:
    """By its nodes where they are known; TRES lists GPUs only where AccountingStorageTRES does."""
    own = [tuple(_gpus(node.get("Gres", ""))) for node in nodes if row["PartitionName"] in _queues_of(node)]
    if own:
        return any(own)
    return "gres/gpu" in row["TRES"] if row.get("TRES", "(null)") != "(null)" else None


def _queues_of(node: _Row) -> tuple[str, ...]:
    return tuple(filter(None, node.get("Partitions", "").split(",")))


def _node(row: _Row) -> NodeKind:
    sockets, each, threads = (_number(row, key) for key in ("Sockets", "CoresPerSocket", "ThreadsPerCore"))
    cores = sockets * each if sockets and each else None
    count = _number(row, COUNT) or 1  # in a probe's file one line stands for many
    state = row.get("State", "UNKNOWN")  # such as IDLE+CLOUD+POWERED_DOWN; * after it: does not respond
    features = row.get("ActiveFeatures", row.get("AvailableFeatures", "(null)"))
    return NodeKind(
        example=row["NodeName"],
        nodes=count,
        in_service=0 if "*" in state or not {*state.split("+")}.isdisjoint(_NODES.out) else count,
        queues=dict.fromkeys(_queues_of(row), count),
        sockets=sockets,
        cores=cores,
        threads_per_core=_threads(row, threads, cores),
        usable_cpus=_number(row, "CPUEfctv") or _number(row, "CPUTot"),
        memory_mib=_number(row, "RealMemory"),
        gpus=tuple(_gpus(row.get("Gres", ""))),
        features=() if features == "(null)" else tuple(features.split(",")),
        arch=row.get("Arch"),
    )


def _threads(row: _Row, threads: int | None, cores: int | None) -> int:
    """Where CPUs is the number of cores, a job gets cores (man slurm.conf, CPUs)."""
    return 1 if threads is None or _number(row, "CPUTot") == cores else threads


def _gpus(gres: str) -> Iterator[NodeGpus]:
    """Yield the GPUs of a node's Gres; shares of GPUs (shard, mps) and other resources are left out."""
    for text in re.split(r",(?![^(]*\))", gres):
        if (match := _FORM.gpu.fullmatch(text)) and int(match["count"]):
            yield NodeGpus(type=match["type"], count=int(match["count"]))


def reduced(listing: str) -> str:
    """Return ``scontrol show node --oneliner`` with one line for each kind and state, and their number."""
    alike: dict[str, list[str]] = {}
    for line in filter(str.strip, listing.splitlines()):
        state = re.search(r"\bState=(\S+)", line)
        alike.setdefault(_OWN.sub("", line) + (state[1] if state else ""), []).append(line)
    first = ((re.sub(r"\s+Reason=.*", "", lines[0]), len(lines)) for lines in alike.values())
    return "".join(f"{line} {COUNT}={count}\n" for line, count in first)
