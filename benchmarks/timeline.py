"""How long a summary of a large timeline takes, and how much memory: ``python benchmarks/timeline.py [MB]``.

The file is a made-up Horovod timeline (1,000 MB without an argument) of 4 ranks and 14 tensors per step,
whose negotiations name the ranks. It is written to a temporary folder and removed. The exit status is 1 if
the summary took more than 300 MB, or did not find what was put in.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TENSORS, RANKS = 14, 4
MOST_MB = 300
"""Of memory, however large the file."""


def events(step: int) -> Iterator[str]:
    """The events of one step, as Horovod 0.28.1 writes them; rank 1 is late in each tenth step."""
    start = 1_000_000 + 60_000 * step
    late = 20_000 if step % 10 == 9 else 0
    for lane in range(1, TENSORS + 1):
        at = start + 20 * lane
        yield f'{{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": {at}, "pid": {lane}}}'
        for rank in (0, 2, 3, 1):
            asked = at + 10 * rank + (late if rank == 1 else 0)
            yield f'{{"ph": "X", "name": "{rank}", "ts": {asked}, "pid": {lane}, "dur": 0}}'
        yield f'{{"ph": "E", "ts": {at + 100 + late}, "pid": {lane}}}'
        for name in ("ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER", "MPI_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"):
            shift = {"MPI_ALLREDUCE": 500, "MEMCPY_OUT_FUSION_BUFFER": 5_000}.get(name, 110)
            yield f'{{"ph": "B", "name": "{name}", "ts": {start + late + shift + 600}, "pid": {lane}}}'
            if name != "ALLREDUCE":
                yield f'{{"ph": "E", "ts": {start + late + shift + 900}, "pid": {lane}}}'
        shape = '{"dtype": "float32", "shape": "[256, 256]"}'
        yield f'{{"ph": "E", "ts": {start + late + 7_000}, "pid": {lane}, "args": {shape}}}'


def write(path: Path, megabytes: int) -> int:
    """Write the timeline; return how many steps it has."""
    steps = 0
    with path.open("w") as file:
        file.write(
            '[\n{"name": "process_name", "ph": "M", "pid": 0, "args": '
            '{"start_time_since_epoch_in_micros": 1}}'
        )
        for lane in range(1, TENSORS + 1):
            name = {
                "name": "process_name",
                "ph": "M",
                "pid": lane,
                "args": {"name": f"allreduce.layer{lane}"},
            }
            file.write(",\n" + json.dumps(name))
        while file.tell() < megabytes * 1_000_000:
            file.write(",\n" + ",".join(text for number in range(100) for text in events(steps + number)))
            steps += 100
        file.write("]")
    return steps


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.json"
        steps = write(path, megabytes)
        start = time.perf_counter()
        words = [sys.executable, "-m", "hpclaunch", "timeline", "--json", str(path)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        document = json.loads(done.stdout)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak = used.ru_maxrss / 1024
        count, verdict = document["files"][0]["events"], document["verdicts"][0]
        print(
            f"{path.stat().st_size / 1e6:.0f} MB, {count:,} events, {steps:,} steps: {seconds:.1f} s, "
            f"{used.ru_utime + used.ru_stime:.1f} s of processor time, peak {peak:.0f} MB"
        )
        print(f"steps found: {document['steps']:,}; verdict: {verdict['kind']}, rank {verdict['rank']}")
        if peak > MOST_MB or document["steps"] != steps or verdict["rank"] != 1:
            raise SystemExit(f"more than {MOST_MB} MB, or another answer than was put in")


if __name__ == "__main__":
    main()
