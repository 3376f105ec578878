#!/usr/bin/env python3
import argparse
import logging
import os
import sys
import time
from pathlib import Path

from shards import ShardCorrupt, clean, read_shard

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
logging.basicConfig(
    level=logging.INFO, stream=sys.stderr,
    format=f"%(asctime)s etl.{rank} %(levelname)-8s %(message)s")
log = logging.getLogger()
root = Path(__file__).resolve().parent
t0 = time.time()


def barrier(stage, marks, patience):
    (marks / f"{stage}.{rank}").write_text(str(os.getpid()))
    limit = time.monotonic() + patience
    while True:
        missing = []
        for r in range(size):
            p = marks / f"{stage}.{r}"
            if not p.exists() or p.stat().st_mtime < t0 - 20:
                missing.append(r)
        if not missing:
            return
        if time.monotonic() > limit:
            log.critical("FATAL: barrier %r failed, pipeline is broken!", stage)
            raise TimeoutError(f"barrier {stage!r}: still waiting after {patience} s")
        time.sleep(0.25)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--raw", default="raw")
    ap.add_argument("--patience", type=float, default=12)
    args = ap.parse_args()
    marks = root / "marks" / (os.environ.get("SLURM_JOB_ID") or os.environ["MASTER_PORT"])
    marks.mkdir(parents=True, exist_ok=True)
    barrier("start", marks, 30)
    total = 0
    for path in sorted((root / args.raw).glob("*.jsonl"))[rank::size]:
        try:
            rows = read_shard(path)
        except ShardCorrupt as err:
            sys.exit(f"etl: giving up: {err} ({err.__cause__})")
        good, bad = clean(rows)
        for row in bad:
            log.error("row %s: could not convert string to float: %r, row dropped", row["id"], row["temp"])
        total += len(good)
        log.info("%s: %d rows", path.name, len(good))
        time.sleep(0.4)
    barrier("clean", marks, args.patience)
    log.info("all shards clean, %d rows here", total)


main()
