"""Facts that only the job's own interpreter can give, collected in a separate process.

That interpreter gets this file's text with ``-c``; for a preflight the file itself goes with the job. It
imports nothing of hpclaunch and runs on Python 3.7 and newer. ``MODE [ARG...]`` selects the facts. Each
answer is one line, ``MARK`` and a JSON object, written immediately, so it is not lost if the next step
crashes or hangs. Other output, such as that of imports, is ignored.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from typing import Any, Callable  # noqa: UP035 (the interpreter of a job may be old)

MARK = "HPCLAUNCH-PROBE "
PREFLIGHT_MARK = "hpclaunch-preflight "
MIN_FREE_BYTES = 1 << 30
"""Less than this is not enough for a checkpoint."""
MIN_FREE_INODES = 10000
"""A Python environment of one framework has some tens of thousands of files."""
HARDWARE_CHECKS = ("cpus", "gpus", "clock")
MAX_CLOCK_OFFSET_S = 1.0
"""With more, a rendezvous may time out early, and lines of timelines and logs are in the wrong order."""
GPU_TOOLS = {
    "nvidia": ("nvidia-smi", "-L"),
    "amd": ("rocm-smi", "--showid"),
    "intel": ("xpu-smi", "discovery"),
}
"""Vendor -> the command that lists the node's GPUs."""
GPU_LINES = {
    "nvidia-smi": r"^GPU (\d+): (.*?)(?: \(UUID.*)?$",
    "rocm-smi": r"^GPU\[(\d+)\]\s*:\s*(.*)$",
    "xpu-smi": r"^\|\s*(\d+)\s*\|\s*Device Name:\s*(.*?)\s*\|?$",
}
"""Tool -> a line of its output: index and name of a GPU."""
TOOL_LIMIT_S = 30.0
IMPORT_LIMIT_S = 120.0
"""An import of TensorFlow from a busy Lustre takes a minute; twice that means it hangs."""
# framework -> (module of Horovod, the library file that its build leaves there)
_EXTENSIONS = {
    "tensorflow": ("horovod.tensorflow", ("tensorflow", "mpi_lib")),
    "keras": ("horovod.tensorflow.keras", ("tensorflow", "mpi_lib")),
    "pytorch": ("horovod.torch", ("torch", "mpi_lib_v2")),
    "mxnet": ("horovod.mxnet", ("mxnet", "mpi_lib")),
}
_BUILT = ("mpi_built", "gloo_built", "nccl_built", "ddl_built", "ccl_built", "cuda_built", "rocm_built")
_ENABLED = ("mpi_enabled", "gloo_enabled", "mpi_threads_supported", "rank", "size")
_PLUGINS = (
    "libnccl-net.so", "libnccl-net-ofi.so", "libnccl-net-aws-ofi.so",
    "librccl-net.so", "librccl-net-ofi.so", "librccl-net-aws-ofi.so",
)  # fmt: skip


def _say(**facts: Any) -> None:
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")
    sys.stdout.flush()


def _ask(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or its exception as text."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)


def installed() -> None:
    """Find Horovod without importing it: version, folder, metadata.json, and the library files that exist."""
    import sysconfig

    facts: dict[str, Any] = {
        "python": sys.executable,
        "python_version": sys.version.split()[0],
        "host": socket.gethostname(),
    }
    facts["scripts"] = sysconfig.get_path("scripts")
    facts["modules"] = [
        name
        for name in ("tensorflow", "keras", "torch", "mxnet", "mpi4py")
        if importlib.util.find_spec(name) is not None
    ]
    spec = importlib.util.find_spec("horovod")
    if spec is None or not spec.origin:
        _say(folder=None, **facts)
        return
    folder = os.path.dirname(os.path.abspath(spec.origin))
    suffixes = {sysconfig.get_config_var("EXT_SUFFIX") or ".so", ".so"}
    libraries = {}
    for name, (_, (inner, base)) in _EXTENSIONS.items():
        for suffix in sorted(suffixes, key=len, reverse=True):
            path = os.path.join(folder, inner, base + suffix)
            if name not in libraries and os.path.isfile(path):
                libraries[name] = path
    try:
        with open(os.path.join(folder, "metadata.json")) as file:
            metadata = json.load(file)
    except (OSError, ValueError) as error:
        metadata = {"error": str(error)}
    _say(folder=folder, version=_version(folder), libraries=libraries, metadata=metadata, **facts)


def _version(folder: str) -> str | None:
    """Read ``__version__`` from the source: importing would run it."""
    with contextlib.suppress(OSError), open(os.path.join(folder, "__init__.py")) as file:
        for line in file:
            if line.startswith("__version__"):
                return line.partition("=")[2].strip().strip("'\"")
    return None


def framework(name: str) -> None:
    """Import one framework's Horovod; report what it was built with and the result of a start of one rank."""
    module = _EXTENSIONS[name][0]
    try:
        hvd = importlib.import_module(module)
    except Exception as error:
        _say(imported=False, error=type(error).__name__ + ": " + str(error))
        return
    _say(imported=True, init=hasattr(hvd, "init"), versions=_ask(lambda: _versions(name)))
    _say(built={f: _ask(getattr(hvd, f)) for f in _BUILT if hasattr(hvd, f)})
    if hasattr(hvd, "init"):
        started = _ask(hvd.init)
        _say(started=started, enabled={f: _ask(getattr(hvd, f)) for f in _ENABLED if hasattr(hvd, f)})


def _versions(name: str) -> dict[str, Any]:
    """Return the framework's version and those of the GPU libraries it was built with."""
    if name == "pytorch":
        torch = importlib.import_module("torch")
        cuda, rocm = torch.version.cuda, getattr(torch.version, "hip", None)
        return {
            "framework": torch.__version__,
            "cuda": cuda,
            "rocm": rocm,
            "xpu": getattr(torch.version, "xpu", None),
            "archs": _ask(torch.cuda.get_arch_list) if cuda or rocm else None,
            "nccl": _ask(lambda: ".".join(map(str, torch.cuda.nccl.version()))) if cuda else None,
            "gpus": _ask(torch.cuda.device_count),
        }
    if name in ("tensorflow", "keras"):
        tensorflow = importlib.import_module("tensorflow")
        build = _ask(lambda: dict(tensorflow.sysconfig.get_build_info()))
        build = build if isinstance(build, dict) else {}
        return {
            "framework": tensorflow.__version__,
            "keras": _ask(lambda: str(tensorflow.keras.__version__)),
            "cuda": build.get("cuda_version"),
            "rocm": build.get("rocm_version"),
            "archs": build.get("cuda_compute_capabilities"),
            "gpus": _ask(lambda: len(tensorflow.config.list_physical_devices("GPU"))),
        }
    mxnet = importlib.import_module("mxnet")
    return {"framework": mxnet.__version__, "gpus": _ask(mxnet.context.num_gpus)}


def ranks(via: str) -> None:
    """Report this rank's number and world size: by mpi4py, or by Horovod for a framework."""
    facts: dict[str, Any] = {"host": socket.gethostname(), "via": via}
    if via == "mpi4py":
        import mpi4py
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        facts.update(rank=comm.Get_rank(), size=comm.Get_size(), mpi4py=mpi4py.__version__)
        facts.update(library=MPI.Get_library_version().strip("\0 \n").splitlines()[0])
        facts.update(standard=".".join(map(str, MPI.Get_version())))
    else:
        hvd = importlib.import_module(_EXTENSIONS[via][0])
        hvd.init()
        facts.update(rank=hvd.rank(), size=hvd.size())
    _say(**facts)


def plugin() -> None:
    """Report which network plugin NCCL or RCCL would load."""
    _say(**_plugin())


def _plugin() -> dict[str, Any]:
    """Load the network plugin that NCCL or RCCL would, by the names they try, from this environment."""
    import ctypes

    wanted = os.environ.get("NCCL_NET_PLUGIN")
    names = list(_PLUGINS)
    if wanted:
        names = [wanted] if "/" in wanted or ".so" in wanted else ["libnccl-net-" + wanted + ".so", wanted]
    tried = {}
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            tried[name] = str(error)
            continue
        table = [v for v in range(3, 16) if hasattr(library, f"ncclNetPlugin_v{v}")]
        return {"loaded": name, "table": table, "wanted": wanted, "tried": tried}
    return {"loaded": None, "wanted": wanted, "tried": tried}


def node(*folders: str) -> None:
    """Report about this node: its clock compared with the file system's, its visible GPUs, its folders."""
    facts: dict[str, Any] = {"host": socket.gethostname(), "cwd": os.getcwd()}
    facts.update(_clock())
    facts["time_s"] = time.time()
    shown = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
    facts["visible"] = {name: os.environ[name] for name in shown if name in os.environ}
    facts["nccl"] = {k: v for k, v in os.environ.items() if k.startswith(("NCCL_", "FI_CXI_"))}
    facts["folders"] = {folder: _ask(functools.partial(_folder, folder)) for folder in folders}
    facts["filesystem"] = _ask(lambda: _filesystem(os.getcwd()))
    _say(**facts)


def _clock() -> dict[str, Any]:
    """Return how far the clock of the file system is ahead of this node's, in seconds."""
    import tempfile

    try:
        before = time.time()
        with tempfile.NamedTemporaryFile(dir=".", prefix=".hpclaunch-clock-") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
            written = os.stat(file.name).st_mtime
        after = time.time()
    except OSError as error:
        return {"fs_offset_s": None, "fs_error": str(error)}
    offset = 0.0 if before <= written <= after else round(written - (before + after) / 2, 3)
    return {"fs_offset_s": offset, "fs_error": None}


def _folder(path: str) -> dict[str, Any]:
    """Return a folder's free space in bytes and its free inodes, for this user."""
    stat = os.statvfs(path)
    return {
        "free_bytes": stat.f_bavail * stat.f_frsize,
        "free_inodes": stat.f_favail if stat.f_files else None,
        "filesystem": _filesystem(path),
    }


def _filesystem(path: str) -> str | None:
    """Return the kind of file system of a path (man 5 proc, /proc/self/mounts)."""
    path, best = os.path.realpath(path), ""
    kind: str | None = None
    with open("/proc/self/mounts") as file:
        for line in file:
            _, where, what = line.split()[:3]
            where = where.replace("\\040", " ")
            inside = path == where or path.startswith(where.rstrip("/") + "/")
            if inside and len(where) >= len(best):
                best, kind = where, what
    return kind


def imports(module: str) -> None:
    """Import what a framework's program imports; start no rank and no MPI."""
    if importlib.util.find_spec(module) is None:
        _say(there=False)
        return
    names = [module]
    if module == "horovod":
        there = {"tensorflow": "tensorflow", "pytorch": "torch"}
        names = [_EXTENSIONS[name][0] for name, own in there.items() if importlib.util.find_spec(own)]
    if module == "mpi4py":
        importlib.import_module(module).rc.initialize = False
        names = ["mpi4py.MPI"]
    wrong = {}
    for name in names:
        try:
            loaded = importlib.import_module(name)
        except Exception as error:
            wrong[name] = type(error).__name__ + ": " + str(error)
            continue
        if module == "horovod" and not hasattr(loaded, "init"):
            wrong[name] = "has no compiled library"
    _say(there=True, imported=[name for name in names if name not in wrong], wrong=wrong)


def library(module: str) -> None:
    """Import a framework; report its version, and which GPUs it is built for."""
    imports(module)
    if importlib.util.find_spec(module) is not None:
        _say(versions=_ask(lambda: _LIBRARIES[module]()))


def _plain_version(module: str) -> dict[str, Any]:
    return {"framework": _ask(lambda: str(importlib.import_module(module).__version__))}


def _jax_versions() -> dict[str, Any]:
    """Return JAX's version and that of the plugin for GPUs: ``jax-cuda12-plugin``, ``jax-rocm60-plugin``.

    They are read from what is installed, since asking JAX for its devices allocates the memory of the GPUs.
    """
    from importlib import metadata

    facts = _plain_version("jax")
    for package in metadata.distributions():
        name = (package.metadata["Name"] or "").lower().replace("_", "-")
        built = re.match(r"jax-(cuda|rocm)([0-9]+)-plugin$", name)
        if built:
            facts[built.group(1)] = built.group(2)
        elif name == "intel-extension-for-openxla":
            facts["xpu"] = package.version
        elif re.match(r"nvidia-nccl-cu[0-9]+$", name):
            facts["nccl"] = package.version
    return facts


_LIBRARIES: dict[str, Callable[[], dict[str, Any]]] = {
    "torch": lambda: _versions("pytorch"),
    "tensorflow": lambda: _versions("tensorflow"),
    "deepspeed": lambda: {**_versions("pytorch"), **_plain_version("deepspeed")},  # its torch's GPUs
    "jax": _jax_versions,
    "mpi4py": lambda: _plain_version("mpi4py"),
    "horovod": lambda: _plain_version("horovod"),
}


def preflight(text: str) -> None:
    """Judge this node before a job's ranks start: one line per check, ``PREFLIGHT_MARK`` and JSON.

    ``text``: JSON with the expected values: ``cpus`` (a list as the kernel writes it), ``gpus`` and
    ``vendor``, ``fabric``, ``module`` or ``imports`` (to import, with the program's ``folder``), ``space``
    (folders). What is not in it is not checked, except the clock, and with ``only`` not even that.
    """
    expected = json.loads(text)
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    judges: list[Callable[[dict[str, Any]], tuple[str, str, str] | None]] = [
        _cpus_planned, _gpus_seen, _fabric_loads, _clock_agrees, _imports_work, _program_imports,
    ]  # fmt: skip
    if expected.get("only") == "imports":
        judges = [_program_imports]
    found = [judge(expected) for judge in judges]
    found += [_has_room(folder) for folder in expected.get("space", ())]
    for each in found:
        if each:
            _judged(host, *each)
    sys.stdout.flush()


def _cpus_planned(expected: dict[str, Any]) -> tuple[str, str, str] | None:
    if not expected.get("cpus"):
        return None
    status = os.environ.get("HPCLAUNCH_SYSROOT", "") + "/proc/self/status"
    with open(status) as file:
        allowed = next(line.split()[1] for line in file if line.startswith("Cpus_allowed_list:"))
    lacking = sorted(_cpu_list(expected["cpus"]) - _cpu_list(allowed))
    if lacking:
        shown = ",".join(map(str, lacking[:8])) + (",..." if len(lacking) > 8 else "")
        return "cpus", "missing", f"CPUs {shown} of the plan are not the job's here: it has {allowed}"
    return "cpus", "have", "the job has CPUs " + allowed


def _cpu_list(text: str) -> set[int]:
    """Read a CPU list as the kernel writes it, such as ``0-3,8``."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def _gpus_seen(expected: dict[str, Any]) -> tuple[str, str, str] | None:
    if expected.get("vendor") not in GPU_TOOLS or not expected.get("gpus"):
        return None
    argv = GPU_TOOLS[expected["vendor"]]
    try:
        answer = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TOOL_LIMIT_S, check=False
        )
    except FileNotFoundError:
        return "gpus", "unknown", f"there is no {argv[0]} here"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "gpus", "missing", f"{argv[0]}: {error}"
    text = answer.stdout.decode(errors="replace")
    count = len({index for index, _ in re.findall(GPU_LINES[argv[0]], text, re.MULTILINE)})
    status = "have" if count >= expected["gpus"] else "missing"
    found = "{} GPU{}".format(count, "s" * (count != 1))
    return "gpus", status, "{} lists {}, the job needs {}".format(argv[0], found, expected["gpus"])


def _fabric_loads(expected: dict[str, Any]) -> tuple[str, str, str] | None:
    if not expected.get("fabric"):
        return None
    answers = _plugin()
    if answers.get("loaded") and answers.get("table"):
        return "fabric-plugin", "have", answers["loaded"] + " loads"
    tried = [answers["loaded"]] if answers["loaded"] else list(answers["tried"])
    return "fabric-plugin", "missing", "none of {} loads: messages would go by TCP".format(", ".join(tried))


def _clock_agrees(expected: dict[str, Any]) -> tuple[str, str, str]:
    answers = _clock()
    if answers["fs_offset_s"] is None:
        return "clock", "unknown", "no file can be written in {}: {}".format(os.getcwd(), answers["fs_error"])
    offset = abs(answers["fs_offset_s"])
    status = "have" if offset <= MAX_CLOCK_OFFSET_S else "missing"
    return "clock", status, f"this node's clock and its file system's differ by {offset:.2g} s"


def _asked_apart(*words: str) -> tuple[subprocess.CompletedProcess[bytes] | None, list[dict[str, Any]]]:
    """Ask this file in another process; None where it takes too long, and the answers that it printed."""
    argv = [sys.executable, os.path.abspath(__file__), *words]
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=IMPORT_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, []
    lines = ended.stdout.decode(errors="replace").splitlines()
    return ended, [json.loads(line[len(MARK) :]) for line in lines if line.startswith(MARK)]


def _imports_work(expected: dict[str, Any]) -> tuple[str, str, str] | None:
    module = expected.get("module")
    if not module:
        return None
    answer, answers = _asked_apart("imports", module)
    if answer is None:
        return module, "missing", f"import {module} takes more than {IMPORT_LIMIT_S:g} s"
    if not answers:
        words = answer.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        evidence = f"import {module} ended with exit status {answer.returncode}: {words[0]}"
        return module, "missing", evidence
    if not answers[0]["there"]:
        return module, "unknown", f"{sys.executable} has no module {module}"
    if answers[0]["wrong"] or not answers[0]["imported"]:
        wrong = "; ".join("{}: {}".format(*pair) for pair in sorted(answers[0]["wrong"].items()))
        return module, "missing", wrong or "no framework for it is installed"
    return module, "have", "imports " + ", ".join(answers[0]["imported"])


def _program_imports(expected: dict[str, Any]) -> tuple[str, str, str] | None:
    """Import what the program imports, in another process, as the program would find it."""
    modules = expected.get("imports")
    if not modules:
        return None
    answer, tried = _asked_apart("program", expected.get("folder", "."), *modules)
    if answer is None:
        return "imports", "missing", "{} take more than {:g} s".format(", ".join(modules), IMPORT_LIMIT_S)
    wrong = ["import {module}: {error}".format(**each) for each in tried if each["error"]]
    if len(tried) < len(modules):
        wrong.append(f"import {modules[len(tried)]} ended Python with exit status {answer.returncode}")
    if wrong:
        return "imports", "missing", "; ".join(wrong) + f" ({sys.executable})"
    return "imports", "have", f"{sys.executable} imports " + ", ".join(modules)


def program(folder: str, *modules: str) -> None:
    """Import modules as a program in ``folder`` would; start no MPI."""
    sys.path[0] = os.path.abspath(folder)
    if any(module.partition(".")[0] == "mpi4py" for module in modules):
        with contextlib.suppress(Exception):
            importlib.import_module("mpi4py").rc.initialize = False
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:  # also one that calls sys.exit
            _say(module=module, error=type(error).__name__ + ": " + str(error))
        else:
            _say(module=module, error=None)


def _has_room(folder: str) -> tuple[str, str, str]:
    found = _ask(functools.partial(_folder, folder))
    if not isinstance(found, dict):
        return "space", "missing", f"{folder}: {found}"
    inodes = found["free_inodes"]
    little = found["free_bytes"] < MIN_FREE_BYTES or (inodes is not None and inodes < MIN_FREE_INODES)
    evidence = "{}: {} MiB free, room for {} more files".format(
        folder, found["free_bytes"] >> 20, "any number of" if inodes is None else inodes
    )
    return "space", "missing" if little else "have", evidence


def verdict(count: str, *nodes: str) -> None:
    """Read the preflight of ``count`` nodes from stdin; name the nodes that failed and exit with status 1.

    ``nodes``: names of the job's nodes, to name those that gave no answer; each of these gets a line, too.
    """
    missing: dict[str, dict[str, str]] = {}
    answered = set()
    for line in sys.stdin:
        _, mark, text = line.partition(PREFLIGHT_MARK)
        try:
            answers = json.loads(text) if mark else None
        except ValueError:
            answers = None
        if answers:
            answered.add(answers["host"])
            if answers["status"] == "missing":
                missing.setdefault(answers["check"], {})[answers["host"]] = answers["evidence"]
    failed = _blamed(missing, answered)
    silent = sorted({node.partition(".")[0] for node in nodes} - answered)
    lacking = int(count) - len(answered)
    if lacking > 0:
        for host in silent if len(silent) == lacking else ():
            evidence = f"no answer ({len(answered)} of {count} nodes answered)"
            failed[host] = [evidence]
            _judged(host, "answer", "missing", evidence)
        if len(silent) != lacking:
            failed["nodes"] = [f"{lacking} of {count} gave no answer"]
    if failed:
        words = [f"{host}: {', '.join(each)}" for host, each in sorted(failed.items())]
        sys.stdout.write("preflight failed: " + "; ".join(words) + "\n")
        sys.exit(1)


def _blamed(missing: dict[str, dict[str, str]], answered: set[str]) -> dict[str, list[str]]:
    """Return what each node lacks. What all of them lack makes none of them bad: it is one entry.

    ``missing``: check -> node -> evidence. The line of a bad node is printed a second time, after all others.
    A node that is alone is bad only where the check is about its hardware.
    """
    failed: dict[str, list[str]] = {}
    for check, hosts in sorted(missing.items()):
        if set(hosts) == answered and (len(answered) > 1 or check not in HARDWARE_CHECKS):
            words = check + ": " + sorted(hosts.values())[0]
            who = f"all {len(answered)} nodes" if len(answered) > 1 else min(answered)
            failed.setdefault(who, []).append(words)
            continue
        for host, evidence in hosts.items():
            failed.setdefault(host, []).append(check + ": " + evidence)
            _judged(host, check, "missing", evidence)
    return failed


def _judged(host: str, check: str, status: str, evidence: str) -> None:
    text = json.dumps({"host": host, "check": check, "status": status, "evidence": evidence[:300]})
    sys.stdout.write(PREFLIGHT_MARK + text + "\n")


if __name__ == "__main__":
    _MODES: tuple[Callable[..., None], ...] = (
        *(installed, framework, ranks, plugin, node),
        *(imports, library, preflight, program, verdict),
    )
    {each.__name__: each for each in _MODES}[sys.argv[1]](*sys.argv[2:])
