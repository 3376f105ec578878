"""The programs of tests/data/launched with the launchers of their frameworks alone: what a job must equal.

HPCLAUNCH_TEST_FRAMEWORKS names the virtual environment of the frameworks (tests/frameworks/build.sh). All
nodes are this machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.conftest import MPI_VARIABLES
from tests.horovod.builds import in_venv
from tests.testbed.cluster import free_ports

VENV = Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"])
PROGRAMS = Path(__file__).parents[1] / "data" / "launched"
ENVIRONMENT = {
    "DS_ACCELERATOR": "cpu",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class ByHand(NamedTuple):
    """The commands of a program by hand.

    {workers} is their number on a node, {all} that of all nodes, {node} the number of a node from 0 on;
    {port} is free, and hosts is a file of DeepSpeed's that lists the nodes.
    """

    alone: str
    """On one node."""
    each: str = ""
    """On each of several nodes. Empty: the launcher can have no second node on this machine."""


_C10D = "torchrun --nnodes {nodes} --nproc-per-node {workers} --rdzv-backend c10d --rdzv-id job"
_C10D += " --rdzv-endpoint 127.0.0.1:{port} --local-addr 127.0.0.1"
_ACCELERATE = "accelerate launch --config_file accelerate.yaml --num_machines {nodes} --num_processes {all}"
_ACCELERATE += " --main_process_port {port}"
_FABRIC = "fabric run --accelerator cpu --strategy ddp --devices {workers} --main-port {port}"
_ZERO = "zero.py digest --deepspeed_config deepspeed.json"

COMMANDS = {
    "fsdp": ByHand(
        "torchrun --standalone --nproc-per-node {workers} fsdp.py digest", f"{_C10D} fsdp.py digest"
    ),
    "ddp": ByHand(
        "torchrun --standalone --nproc-per-node {workers} ddp.py digest",
        "torchrun --nnodes {nodes} --node-rank {node} --nproc-per-node {workers} --master-addr 127.0.0.1"
        " --master-port {port} ddp.py digest",
    ),
    "accelerate": ByHand(
        f"{_ACCELERATE} accelerated.py digest",
        f"{_ACCELERATE} --machine_rank {{node}} --main_process_ip 127.0.0.1 accelerated.py digest",
    ),
    "deepspeed": ByHand(
        f"deepspeed --num_gpus {{workers}} --master_port {{port}} {_ZERO}",
        "deepspeed --hostfile hosts --no_ssh --node_rank {node} --master_addr 127.0.0.1"
        f" --master_port {{port}} {_ZERO}",
    ),
    "fabric": ByHand(
        f"{_FABRIC} fabric.py digest",
        f"{_FABRIC} --num-nodes {{nodes}} --node-rank {{node}} --main-address 127.0.0.1 fabric.py digest",
    ),
    "trainer": ByHand(
        "python trainer.py digest --devices {workers}",
        "env MASTER_ADDR=127.0.0.1 MASTER_PORT={port} NODE_RANK={node}"
        " python trainer.py digest --devices {workers} --num-nodes {nodes}",
    ),
    "trainer under torchrun": ByHand(
        "torchrun --standalone --nproc-per-node {workers} trainer.py digest --devices {workers}",
        f"{_C10D} trainer.py digest --devices {{workers}} --num-nodes {{nodes}}",
    ),
    # Open MPI 4's own variables; those of a Slurm step with one task a node.
    "jax": ByHand(
        "mpirun -n {workers} --host localhost:{workers} python mean.py digest",
        "env SLURM_JOB_ID=1 SLURM_STEP_NODELIST=localhost SLURM_NTASKS={nodes} SLURM_PROCID={node}"
        " SLURM_LOCALID=0 JAX_COORDINATOR_PORT={port} python mean.py digest",
    ),
    "ray": ByHand("python spread.py digest", "python spread.py digest"),
}


def digest_by_hand(name: str, nodes: int, workers: int, folder: Path) -> str:
    """Run a program on so many nodes with so many workers each and return the text of its digest.

    The folder is made, with the programs in it. Ray has an actor a node, and ``workers`` CPUs for it.
    Raises AssertionError with the output where a process fails.
    """
    shutil.copytree(PROGRAMS, folder)
    (folder / "hosts").write_text("".join(f"node{node} slots={workers}\n" for node in range(nodes)))
    command = COMMANDS[name].each if nodes > 1 else COMMANDS[name].alone
    numbers = {"nodes": nodes, "workers": workers, "all": nodes * workers, "port": free_ports(1)}
    lines = [command.format(**numbers, node=node) for node in range(nodes)]
    if name == "ray":
        with ray_cluster(nodes, workers) as address:
            _together(lines[:1], folder, {"RAY_ADDRESS": address})
    else:
        _together(lines, folder, {})
    return (folder / "digest").read_text()


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a shell in which the frameworks' environment is active.

    With a file ~/.ray/auth_token and no RAY_AUTH_MODE, Ray 2.60's head wants a token that drivers lack.
    """
    alone = {"PATH": in_venv(VENV), "RAY_AUTH_MODE": "disabled"}
    return {**os.environ, **MPI_VARIABLES, **ENVIRONMENT, **alone, **more}


def _together(lines: list[str], folder: Path, variables: dict[str, str]) -> None:
    """Run commands at the same time; the first that fails ends the others, and is told."""
    started = [_start(line, folder, variables) for line in lines]
    failed = ""
    with ThreadPoolExecutor(len(started)) as threads:
        ends = {threads.submit(each.communicate): each for each in started}
        for end in as_completed(ends):
            if ends[end].returncode != 0 and not failed:
                failed = f"{shlex.join(map(str, ends[end].args))}\n{end.result()[0]}"  # type: ignore[arg-type]
                _terminate(started)
    assert not failed, failed


def _start(line: str, folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        shlex.split(line),
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _terminate(started: list[subprocess.Popen[str]]) -> None:
    for each in started:
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGTERM)


@contextmanager
def ray_cluster(nodes: int, cpus: int) -> Iterator[str]:
    """Start a Ray cluster with a node on each of 127.0.0.2, 127.0.0.3 ... and give its address.

    A node ends by SIGTERM of its ``ray start --block``: ``ray stop`` would end all Ray of this machine.
    """
    place = Path(tempfile.mkdtemp(prefix="ray-"))  # short, for the paths of its sockets
    address = f"127.0.0.2:{free_ports(1)}"
    own = (f"--head --port {address.split(':')[1]} --include-dashboard false", f"--address {address}")
    ranges = "--min-worker-port 0 --max-worker-port 0 --object-store-memory 100000000 --num-gpus 0"
    started = []
    try:
        for node in range(nodes):
            line = f"ray start --block {own[node > 0]} --node-ip-address 127.0.0.{node + 2} --num-cpus {cpus}"
            started.append(_start(f"{line} {ranges} --temp-dir {place}/{node}", place, {}))
            _wait_for("Ray runtime started.", started[-1])
        yield address
    finally:
        for each in reversed(started):
            _terminate([each])
            each.communicate()
        shutil.rmtree(place, ignore_errors=True)  # a logger of Ray may still write


def _wait_for(words: str, started: subprocess.Popen[str]) -> None:
    assert started.stdout
    said = []
    for line in started.stdout:
        said.append(line)
        if words in line:
            return
    raise AssertionError("".join(said))
