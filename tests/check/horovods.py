"""Made-up Horovod packages for real interpreters: the layout of 0.28.1, with code that misbehaves on import.

They stand for builds that cannot be had on every machine; what loads them is the real import system and the
real dynamic loader.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
WORKING = """
def init(): pass
def mpi_built(): return True
def gloo_built(): return True
def nccl_built(): return 0
def cuda_built(): return False
def rocm_built(): return False
def ddl_built(): return False
def ccl_built(): return False
def mpi_enabled(): return True
def mpi_threads_supported(): return True
def rank(): return 0
def size(): return 1
"""


def make_horovod(folder: Path, torch_init: str, *, library: bool = True, built_with: str = "2.0.1") -> Path:
    """Write a package ``horovod`` whose ``horovod.torch`` is this code, and a ``torch`` 2.0.1 next to it."""
    package = folder / "horovod"
    (package / "torch").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.28.1'\n")
    (package / "torch" / "__init__.py").write_text(torch_init)
    (package / "metadata.json").write_text(json.dumps({"pytorch": built_with, "dummy": "none"}))
    if library:
        make_library(package / "torch" / f"mpi_lib_v2{SUFFIX}", "int made_up;")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(
        "import types\n__version__ = '2.0.1'\nversion = types.SimpleNamespace(cuda=None, hip=None)\n"
        "cuda = types.SimpleNamespace(device_count=lambda: 0)\n"
    )
    return folder


def make_library(path: Path, source: str, *flags: str) -> Path:
    """Compile C code into a shared library."""
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), "-x", "none", *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return path
