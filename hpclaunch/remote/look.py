# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""The processes of a running job on this node: cores, memory policy, threads, variables, devices.

    python3 -c TEXT JOB_VARIABLE JOB_ID

TEXT is that of ``words.json`` and of this file. It only reads /proc and /sys, and the list of nvidia-smi or
rocm-smi where a rank names a GPU that they do not tell; writes nothing and runs on any Python from 3.6 on.
A process belongs to the job if its environment, as it was when the process started, says so, or its cgroup
does. The answer is JSON in short lines, since a launcher mixes long lines of several nodes.
"""

import json
import os
import re
import socket
import sys
import time
from collections import Counter
from typing import Any, Dict, Iterable, List, Optional

from hpclaunch.remote.words import WORDS

MARK = "HPCLAUNCH-LOOK "
_PIECE = 400
MOST_PROCESSES = 4096
PAUSE_S = 0.2
VARIABLES = re.compile("(" + "|".join(WORDS["variables"]) + ")$")
"""Variables about ranks, GPUs, threads and network cards; no others leave the node."""
RANKS_OF: List[List[str]] = WORDS["ranks of"]
"""How a process is known for a rank, the surest first: a variable that must be there, then those of its rank,
its local rank and the number of ranks. CROSS_SIZE is deepspeed's (launcher/launch.py, 0.19)."""
GPU_VARIABLES: List[str] = WORDS["GPU variables"]
HELPERS = re.compile("(" + "|".join(WORDS["helpers"]) + ")")
"""Programs of launchers, which have the variables of a rank and are none."""
SHELLS = re.compile("(ba|da|k|z)?sh")
WORKER_LAUNCHERS = re.compile(WORDS["worker launchers"])
"""The command lines of what starts the workers of a node."""
DEVICE = re.compile(r"/dev/(nvidia\d+|dri/renderD\d+|kfd|cxi\d+|infiniband/uverbs\d+|hfi1_\d+|davinci\d+)$")
"""Device files of GPUs and network cards that a rank opens to use them."""


def read(path: str, most: int = 1 << 20) -> str:
    """Return a file's text, at most ``most`` bytes; empty if the process has ended or is another user's."""
    try:
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def environment_of(pid: str) -> Dict[str, str]:
    """Return the variables of a process as it started."""
    pairs = (entry.partition("=") for entry in read("/proc/" + pid + "/environ").split("\0"))
    return {name: value for name, _, value in pairs if name}


def field(status: str, name: str) -> str:
    """Return a line of /proc/PID/status."""
    match = re.search("^" + name + ":\\s*(.*)$", status, re.MULTILINE)
    return match.group(1) if match else ""


def threads_of(pid: str, names: Iterable[str]) -> Dict[str, int]:
    """Return CPU list -> number of these threads that may run there."""
    tasks = "/proc/" + pid + "/task/"
    lists = [field(read(tasks + name + "/status"), "Cpus_allowed_list") for name in names]
    return dict(Counter(filter(None, lists)))


def running_threads(pid: str) -> List[str]:
    """Return the threads that run or wait for a CPU (proc(5), state R); those that sleep do not."""
    tasks = "/proc/" + pid + "/task/"
    return [name for name in names_in(tasks) if read(tasks + name + "/stat").rpartition(")")[2][1:2] == "R"]


def look_again(processes: List[Dict[str, Any]]) -> None:
    """Turn the threads that run into CPU list -> number of those that still do, after a while if three do."""
    time.sleep(PAUSE_S * any(len(one["running"]) > 2 for one in processes))
    for one in processes:
        both = set(running_threads(str(one["pid"]))).intersection(one["running"])
        one["running"] = threads_of(str(one["pid"]), both)


def target(link: str) -> str:
    """Return what an open file is."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def opened(pid: str) -> Dict[str, str]:
    """Return the open files of a process: number -> what it is."""
    return {name: target("/proc/" + pid + "/fd/" + name) for name in names_in("/proc/" + pid + "/fd")}


def flux_id(text: str) -> str:
    """Return a job id of Flux with its f, where the environment has the letter U+0192."""
    return re.sub("^[^0-9A-Za-z]+", "f", text)


def without_instance(found: List[Dict[str, Any]], job: str) -> List[Dict[str, Any]]:
    """Return the processes inside the Flux instance that a batch job is, without the instance's own; all
    where the job is none. Ids of jobs inside an instance are its own."""
    inner = [one for one in found if flux_id(one["variables"].get("FLUX_JOB_ID", "")) != flux_id(job)]
    return inner or found


def belongs(pid: str, environ: Dict[str, str], variable: str, job: str) -> bool:
    """Tell whether a process is one of the job."""
    named = environ.get(variable, "")
    if variable == "FLUX_ENCLOSING_ID":
        named, job = flux_id(named or environ.get("FLUX_JOB_ID", "")), flux_id(job)
    if named == job or (variable == "PBS_JOBID" and named.partition(".")[0] == job.partition(".")[0]):
        return True
    return "/job_" + job + "/" in read("/proc/" + pid + "/cgroup")


def policy_of(numa_maps: str) -> str:
    """Return a memory policy with its nodes, such as ``prefer:3``; empty for one without, as is the default.

    Names as Linux 6.12 writes them (mm/mempolicy.c), with a hyphen for a space.
    """
    text = numa_maps.partition("\n")[0].partition(" ")[2].replace("prefer (many)", "prefer-many")
    policy = text.replace("weighted ", "weighted-").partition(" ")[0]
    return policy if ":" in policy else ""


def gpus_here() -> Dict[str, Dict[str, str]]:
    """Return UUID -> PCI address of this node's GPUs, and device file -> PCI address.

    NVIDIA: /proc/driver/nvidia (its driver's README). AMD: a UUID is GPU- and 16 digits, the kfd's
    unique_id, as ROCR_VISIBLE_DEVICES takes it; the address is in location_id (rocm_smi_kfd.cc).
    """
    uuids: Dict[str, str] = {}
    files = render_nodes()
    for address in names_in("/proc/driver/nvidia/gpus"):
        text = read("/proc/driver/nvidia/gpus/" + address + "/information")
        for name, known in (("GPU UUID", uuids), ("Device Minor", files)):
            match = re.search("^" + name + r":\s*(\S+)\s*$", text, re.MULTILINE)
            if match and "?" not in match.group(1):
                known[match.group(1) if known is uuids else "/dev/nvidia" + match.group(1)] = address
    for node in names_in("/sys/class/kfd/kfd/topology/nodes"):
        text = read("/sys/class/kfd/kfd/topology/nodes/" + node + "/properties")
        numbers = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
        if numbers.get("simd_count") and numbers.get("unique_id"):  # processors have none
            at, domain = numbers.get("location_id", 0), numbers.get("domain", 0)
            address = f"{domain:04x}:{at >> 8 & 255:02x}:{at >> 3 & 31:02x}.{at & 7}"
            uuids[f"GPU-{numbers['unique_id']:016x}"] = address
    return {"gpus": uuids, "devices": files}


def render_nodes() -> Dict[str, str]:
    """Return device file -> PCI address of what draws or computes through the kernel's drm."""
    names = [name for name in names_in("/sys/class/drm") if name.startswith("renderD")]
    folder = "/sys/class/drm/"
    return {
        "/dev/dri/" + name: os.path.basename(os.path.realpath(folder + name + "/device")) for name in names
    }


def names_in(folder: str) -> List[str]:
    """Return the names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def printed(*words: str) -> str:
    """Return the output of a program; empty where it is missing or fails."""
    import subprocess  # hardly ever needed

    try:
        answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.decode("utf-8", "replace")


def listed_gpus(names: str) -> Dict[str, Dict[str, str]]:
    """Return what `gpus_here` tells; of GPUs that ranks name otherwise, what the vendor's program lists.

    slices: UUID of a MIG instance -> its GPU's, which nothing but ``nvidia-smi -L`` tells. That gives a GPU's
    number, of those that this process may use.
    """
    here, gpu = gpus_here(), ""
    slices: Dict[str, str] = {}
    unknown = "GPU-" in names and not here["gpus"]
    text = printed("nvidia-smi", "-L") if unknown or "MIG-" in names else ""
    for place, uuid in re.findall(r"^ *(GPU \d+|MIG ).*\(UUID: ([\w/-]+)\)", text, re.MULTILINE):
        if place == "MIG ":
            slices[uuid] = gpu
        else:
            gpu = uuid
            here["gpus"].setdefault(gpu, place)
    if unknown and not here["gpus"]:
        here["gpus"] = listed_by_rocm(printed("rocm-smi", "--showuniqueid", "--showbus"))
    return dict(here, slices=slices)


def listed_by_rocm(text: str) -> Dict[str, str]:
    """Return UUID -> PCI address; rocm-smi's numbers need not be ROCr's, and its ids lack leading zeros."""
    found = re.findall(r"^GPU\[(\d+)\]\s*: (?:Unique ID|PCI Bus):\s*([\w:.]+)\s*$", text, re.MULTILINE)
    address = {card: value.lower() for card, value in found if ":" in value}
    numbers = {card: int(value, 16) for card, value in found if value.startswith("0x")}
    return {f"GPU-{numbers[card]:016x}": address[card] for card in numbers if card in address}


def described(pid: str, environ: Dict[str, str]) -> Optional[Dict[str, Any]]:
    """Return what one process is; None: it has ended meanwhile."""
    numbers = read("/proc/" + pid + "/stat").rpartition(")")[2].split()
    if len(numbers) < 13 or numbers[0] in "ZX":
        return None
    words = [word for word in read("/proc/" + pid + "/cmdline").split("\0") if word]
    return {
        "pid": int(pid),
        "parent": int(numbers[1]),
        "ticks": int(numbers[11]) + int(numbers[12]),
        "program": [word[:120] for word in words[:4]],
        "variables": {name: environ[name][:400] for name in environ if VARIABLES.match(name)},
    }


def facts(pid: str, environ: Dict[str, str]) -> Optional[Dict[str, Any]]:
    """Return what one process has; None: it has ended meanwhile."""
    status, process = read("/proc/" + pid + "/status"), described(pid, environ)
    if not status or process is None:
        return None
    return {
        **process,
        "cpus": field(status, "Cpus_allowed_list"),
        "mems": policy_of(read("/proc/" + pid + "/numa_maps")) or field(status, "Mems_allowed_list"),
        "running": running_threads(pid),
        "threads": threads_of(pid, names_in("/proc/" + pid + "/task")),
        "devices": sorted({path for path in opened(pid).values() if DEVICE.match(path)}),
    }


def own_processes() -> List[str]:
    """Return this process and those above it: the step that looks is not what it looks for."""
    found: List[str] = []
    pid = str(os.getpid())
    while pid not in ("0", "1", "") and len(found) < 100:
        found.append(pid)
        pid = field(read("/proc/" + pid + "/status"), "PPid")
    return found


def chosen(pid: str, environ: Dict[str, str], variable: str, job: str) -> bool:
    """Tell whether a process is one of the job, on this node, and not of the step that looks."""
    own_step, own_node = os.environ.get("SLURM_STEP_ID"), os.environ.get("SLURMD_NODENAME")
    in_own_step = own_step is not None and environ.get("SLURM_STEP_ID") == own_step
    if environ.get("SLURMD_NODENAME", own_node) != own_node:  # several slurmd on one machine
        return False
    if "HPCLAUNCH_HELPER" in environ:  # a copy of a rank's stderr
        return False
    return bool(environ) and not in_own_step and belongs(pid, environ, variable, job)


def look(variable: str, job: str) -> List[Dict[str, Any]]:
    """Return the processes of the job on this node."""
    mine = set(own_processes())
    found: List[Dict[str, Any]] = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid in mine or len(found) >= MOST_PROCESSES:
            continue
        environ = environment_of(pid)
        process = facts(pid, environ) if chosen(pid, environ, variable, job) else None
        if process is not None:
            found.append(process)
    look_again(found)
    return without_instance(found, job) if variable == "FLUX_ENCLOSING_ID" else found


def answer(processes: List[Dict[str, Any]]) -> None:
    """Print what was found on this node."""
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    named = " ".join(one["variables"].get(name, "") for one in processes for name in GPU_VARIABLES)
    text = json.dumps(dict(listed_gpus(named), host=host, processes=processes))
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    for number, piece in enumerate(pieces):
        sys.stdout.write(f"{MARK}{host} {number}/{len(pieces)} {piece}\n")
    sys.stdout.flush()


def main() -> None:
    """Print the answer."""
    variable, job = sys.argv[1:3]
    answer(look(variable, job))


if __name__ == "__main__":
    main()
