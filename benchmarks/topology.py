"""Time of reading this node, as whole processes: ``hpclaunch topology`` beside ``lstopo-no-graphics``.

    python benchmarks/topology.py [--runs 20] [--json]

The processes are started in turn, so that a busy machine slows all of them alike; medians and the ratio to
lstopo are printed. Where lstopo is not installed (Debian: package hwloc-nox) that is said, and there is no
ratio. lstopo writes XML with all devices, which is what hpclaunch would read from it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

READ = "from hpclaunch.topology.sources import read_live; read_live()"
COMMANDS: Mapping[str, Sequence[str]] = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "read_live": (sys.executable, "-c", READ),
    "hpclaunch topology": (sys.executable, "-m", "hpclaunch", "topology", "--json"),
    "lscpu": ("lscpu", "-p=CPU,CORE,SOCKET,NODE,CACHE"),
    "lstopo": ("lstopo-no-graphics", "--of", "xml"),
}


def seconds(command: Sequence[str]) -> float:
    """Run a command to its end and return the wall time; raises when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measure all commands that are installed and print a table or one JSON document."""
    parser = argparse.ArgumentParser(description="Time of reading this node's topology, as whole processes")
    parser.add_argument("--runs", type=int, default=20, help="runs of each command (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    present = {name: command for name, command in COMMANDS.items() if shutil.which(command[0])}
    times: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(options.runs + 1):
        for name, command in present.items():
            times[name].append(seconds(command))
    # The first round fills the caches of the file system and is not counted.
    median_s = {name: statistics.median(found[1:]) for name, found in times.items()}
    peer_s = median_s.get("lstopo")
    ratio = {name: value / peer_s if peer_s else None for name, value in median_s.items()}
    absent = [name for name in COMMANDS if name not in present]
    if options.json:
        record = {
            "runs": options.runs,
            "median_s": median_s,
            "ratio_to_lstopo": ratio,
            "not_installed": absent,
        }
        print(json.dumps(record))
        return
    for name, value in median_s.items():
        beside = ratio[name]
        print(f"{name:20} {1000 * value:8.1f} ms" + (f"  {beside:5.1f} x lstopo" if beside else ""))
    for name in absent:
        print(f"{name:20} not installed")


if __name__ == "__main__":
    main()
