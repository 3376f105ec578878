"""A build backend of the standard library alone; the commands it installs print how they were called."""

import os
import time
import zipfile
from pathlib import Path

COMMANDS = ("hpclaunch", "ruff", "mypy", "pytest")
MODULE = """
import os, sys
def main():
    print(os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), flush=True)
    sys.exit(int(os.environ.get("TOY_EXIT_" + os.path.basename(sys.argv[0]), "0")))
"""
INFO = "hpclaunch-0.dist-info"
FILES = {
    "hpclaunch/__init__.py": "",
    "hpclaunch/toy.py": MODULE,
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: hpclaunch\nVersion: 0\n"
    "Provides-Extra: all\nProvides-Extra: dev\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\n"
    + "".join(f"{name} = hpclaunch.toy:main\n" for name in COMMANDS),
}


def build_editable(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Write the wheel; with ``TOY_HANG`` say so in the file it names and wait to be killed."""
    if marker := os.environ.get("TOY_HANG"):
        Path(marker).touch()
        time.sleep(600)
    record = f"{INFO}/RECORD"
    files = {**FILES, record: "".join(f"{name},,\n" for name in (*FILES, record))}
    name = "hpclaunch-0-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
