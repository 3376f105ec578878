"""Make a virtual environment in the way of ``python -m venv``, with the pip of this one.

``ensurepip`` compiles pip anew for each environment, which takes 6 s; here it is copied with its bytecode.
As a program: ``python quick_venv.py FOLDER``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def quick_venv(folder: str | Path) -> None:
    """Make the environment; its pip is started by ``python -m pip``."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    ours = Path(sysconfig.get_path("purelib"))
    theirs = Path(folder) / ours.relative_to(sys.prefix)
    for part in ours.glob("pip*"):
        shutil.copytree(part, theirs / part.name)


if __name__ == "__main__":
    quick_venv(sys.argv[1])
