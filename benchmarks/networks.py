"""The allreduces of the bundled training on three networks, simulated, next to their closed forms.

    python benchmarks/networks.py [--site lumi-g] [--model resnet50] [--gpus 128,512,1024,2048,4096]

Runs ``hpclaunch predict --simulate`` for each network with the nodes, links and ranks of the site; needs
SimGrid (apt-get install g++ libsimgrid-dev). Prints a table in Markdown: milliseconds of the sum of the
gradients of the model; an allreduce of more than ``--most-messages`` messages is left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from typing import Any

NETWORKS = ("fat-tree", "dragonfly", "torus")


def exchanges(network: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What is simulated on one network."""
    line = [sys.executable, "-m", "hpclaunch", "predict", "--json", "--simulate", "--network", network]
    line += ["--site", options.site, "--model", options.model, "--gpus", options.gpus, "--strategy", "data"]
    line += ["--batch-per-worker", "32", "--most-messages", str(options.most_messages)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    found: list[dict[str, Any]] = json.loads(done.stdout)["simulation"]["exchanges"]
    return found


def milliseconds(seconds: float | None) -> str:
    """Three digits; a dash for what was left out."""
    return "-" if seconds is None else f"{1e3 * seconds:#.3g}".rstrip(".")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", default="lumi-g")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--gpus", default="128,512,1024,2048,4096")
    parser.add_argument("--most-messages", type=int, default=3_000_000)
    options = parser.parse_args()
    start = time.monotonic()
    by_network = [exchanges(network, options) for network in NETWORKS]
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libsimgrid-dev"], capture_output=True)
    print(
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, SimGrid {version.stdout.decode() or 'unknown'},"
    )
    print(f"{options.model} on {options.site}, {time.monotonic() - start:.0f} s\n")
    print("| GPUs | nodes | allreduce | closed form, ms | " + ", ms | ".join(NETWORKS) + ", ms |")
    print("|---:|---:|---|" + "---:|" * (1 + len(NETWORKS)))
    for same in zip(*by_network, strict=True):
        one = same[0]
        cells = [milliseconds(one["closed_form_s"]), *(milliseconds(on["simulated_s"]) for on in same)]
        print(f"| {one['gpus']} | {one['nodes']} | {one['allreduce']} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
