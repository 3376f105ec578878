"""The questions that only the job's own interpreter can answer, asked in a process of its own.

This file's text is handed to that interpreter with ``-c``: it imports nothing of hpclaunch and runs on any
Python from 3.7 on. ``MODE [ARG...]`` says what to ask; each answer is one line, ``MARK`` and a JSON object,
written at once so that it is kept when the next step crashes or hangs. What imports print is passed over.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import socket
import sys
import time
from typing import Any, Callable  # noqa: UP035 (the interpreter of a job may be old)

MARK = "HPCLAUNCH-PROBE "
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
    try:
        with open(os.path.join(folder, "__init__.py")) as file:
            for line in file:
                if line.startswith("__version__"):
                    return line.partition("=")[2].strip().strip("'\"")
    except OSError:
        pass
    return None


def framework(name: str) -> None:
    """Import one framework's Horovod, ask what it was built with, then what a start of one rank says."""
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
        gpu = torch.version.cuda or getattr(torch.version, "hip", None)

        return {
            "framework": torch.__version__,
            "cuda": torch.version.cuda,
            "rocm": getattr(torch.version, "hip", None),
            "archs": _ask(torch.cuda.get_arch_list) if gpu else None,
            "nccl": _ask(lambda: ".".join(map(str, torch.cuda.nccl.version())))
            if torch.version.cuda
            else None,
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
    """Say who this rank is: by mpi4py, or by Horovod for a framework."""
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
        table = [v for v in range(3, 16) if _has(library, f"ncclNetPlugin_v{v}")]
        _say(loaded=name, table=table, wanted=wanted, tried=tried)
        return
    _say(loaded=None, wanted=wanted, tried=tried)


def _has(library: Any, symbol: str) -> bool:
    try:
        getattr(library, symbol)
    except AttributeError:
        return False
    return True


def node(*folders: str) -> None:
    """Describe this node: its clock against the file system's, the GPUs shown to it, its folders."""
    import tempfile

    facts: dict[str, Any] = {"host": socket.gethostname(), "cwd": os.getcwd()}
    facts.update(fs_offset_s=None, fs_error=None)
    try:
        before = time.time()
        with tempfile.NamedTemporaryFile(dir=".", prefix=".hpclaunch-clock-") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
            written = os.stat(file.name).st_mtime
        after = time.time()
        facts["fs_offset_s"] = 0.0 if before <= written <= after else round(written - (before + after) / 2, 3)
    except OSError as error:
        facts["fs_error"] = str(error)
    facts["time_s"] = time.time()
    shown = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
    facts["visible"] = {name: os.environ[name] for name in shown if name in os.environ}
    facts["nccl"] = {k: v for k, v in os.environ.items() if k.startswith(("NCCL_", "FI_CXI_"))}
    facts["folders"] = {folder: _ask(functools.partial(_folder, folder)) for folder in folders}
    facts["filesystem"] = _ask(lambda: _filesystem(os.getcwd()))
    _say(**facts)


def _folder(path: str) -> dict[str, Any]:
    """Return a folder's free space in bytes and free inodes, as this user may use them."""
    stat = os.statvfs(path)
    return {
        "free_bytes": stat.f_bavail * stat.f_frsize,
        "free_inodes": stat.f_favail if stat.f_files else None,
        "filesystem": _filesystem(path),
    }


def _filesystem(path: str) -> str | None:
    """Return the kind of file system that holds a path (man 5 proc, /proc/self/mounts)."""
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


if __name__ == "__main__":
    _MODES: dict[str, Callable[..., None]] = {
        "installed": installed,
        "framework": framework,
        "ranks": ranks,
        "plugin": plugin,
        "node": node,
    }
    _MODES[sys.argv[1]](*sys.argv[2:])
